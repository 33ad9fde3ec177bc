const char *greeting(void) {
    return GREETING;
}
