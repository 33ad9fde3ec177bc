// SPDX-License-Identifier: GPL-3.0-or-later
// The proxy in front of hub and notebooks: configurable-http-proxy, with what its own command lacks.
//
// On SIGHUP it reads its certificate again; connections that are open stay open (Node.js, tls.Server,
// setSecureContext). It answers with HSTS where it is told to.

import fs from "node:fs";
import { parseArgs } from "node:util";

import { ConfigurableProxy } from "configurable-http-proxy";
import { defaultLogger } from "./node_modules/configurable-http-proxy/lib/log.js";
import { nameClients } from "./client.mjs";
import { endWithTheirRoute } from "./sockets.mjs";

// Mozilla, Server Side TLS, configuration "intermediate": TLS 1.2 and 1.3, and for 1.2 authenticated ciphers with
// forward secrecy. Those with DHE are left out, as all clients of that configuration have ECDHE.
const TLS = {
  minVersion: "TLSv1.2",
  ciphers: [
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-RSA-AES128-GCM-SHA256",
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-RSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-CHACHA20-POLY1305",
    "ECDHE-RSA-CHACHA20-POLY1305",
  ].join(":"),
  honorCipherOrder: false, // all of them are good, and clients know which they are fast at
};

const { values: options } = parseArgs({
  options: {
    port: { type: "string" },
    certificate: { type: "string" }, // PEM: the chain and its key in one file, so both are always of one kind
    "api-port": { type: "string" },
    hub: { type: "string" },
    "hsts-seconds": { type: "string", default: "0" },
  },
});

function credentials() {
  const pem = fs.readFileSync(options.certificate);
  return { ...TLS, cert: pem, key: pem };
}

const log = defaultLogger({ level: "info" });
const proxy = new ConfigurableProxy({
  log,
  ssl: credentials(),
  authToken: process.env.CONFIGPROXY_AUTH_TOKEN,
  defaultTarget: options.hub,
  errorTarget: `${options.hub}/hub/error`,
  xfwd: true,
  prependPath: true,
});
endWithTheirRoute(proxy);
nameClients(proxy, process.env.CONFIGPROXY_AUTH_TOKEN);

if (Number(options["hsts-seconds"]) > 0) {
  const value = `max-age=${options["hsts-seconds"]}`; // RFC 6797, 6.1.1
  proxy.proxyServer.prependListener("request", (request, response) => {
    response.setHeader("Strict-Transport-Security", value);
  });
}

process.on("SIGHUP", () => {
  try {
    proxy.proxyServer.setSecureContext(credentials());
    log.info("Read the certificate again");
  } catch (error) {
    log.error(`The certificate stays as it was: ${error.message}`);
  }
});
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(0));
// One bad connection must not end those of everybody else.
process.on("uncaughtException", (error) => log.error(error.stack ?? error.message));

// A port that is taken is no bad connection.
for (const server of [proxy.proxyServer, proxy.apiServer]) {
  server.on("error", (error) => {
    log.error(error.message);
    process.exit(1);
  });
}
proxy.proxyServer.listen(Number(options.port));
proxy.apiServer.listen(Number(options["api-port"]), "127.0.0.1");
