"""Changes the product by one small mistake at a time and sees whether a test notices: docs/testing.md."""
