// SPDX-License-Identifier: GPL-3.0-or-later
// The proxy in front of hub and notebooks: configurable-http-proxy, with what its own command lacks.
//
// On SIGHUP it reads its certificate again; connections that are open stay open (Node.js, tls.Server,
// setSecureContext). It answers with HSTS where it is told to. It keeps the origins of browsers apart (origins.mjs).

import fs from "node:fs";
import net from "node:net";
import { parseArgs } from "node:util";

import { ConfigurableProxy } from "configurable-http-proxy";
import { defaultLogger } from "./node_modules/configurable-http-proxy/lib/log.js";
import { nameClients } from "./client.mjs";
import { Nodes } from "./nodes.mjs";
import { cookiesFor, guard, isPage, isWelcome, killer, Origins } from "./origins.mjs";
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
    url: { type: "string" }, // of the hub, as browsers know it
    notebooks: { type: "string" }, // where theirs are: see origins.mjs
    "hsts-seconds": { type: "string", default: "0" },
  },
});

function credentials() {
  const pem = fs.readFileSync(options.certificate);
  return { ...TLS, cert: pem, key: pem };
}

const log = defaultLogger({ level: "info" });
// An engine whose notebooks are on other machines says so in a drop-in of the unit.
const { NODES_CERTIFICATE: certificate, NODES_AUTHORITY: authority, NODES_PORT: nodesPort } = process.env;
const nodes = certificate ? new Nodes({ certificate, authority }) : undefined;
const origins = new Origins({ hub: options.url, notebooks: options.notebooks });

class Front extends ConfigurableProxy {
  async targetForReq(request) {
    const { place } = request.gpufarm;
    if (!place) return { prefix: "/", target: options.hub };
    const path = decodeURIComponent(new URL(request.url, options.url).pathname);
    const route = await this._routes.getTarget(`/${place}${path}`);
    if (!route || route.prefix === "/") return undefined;
    const { target, user, server_name: server = "" } = route.data;
    const owner = target.startsWith("https:") ? `#${encodeURIComponent(`${user}/${server}`)}` : "";
    return { prefix: route.prefix, target: target + owner };
  }

  // Of a target by TLS it matters whose notebook is there.
  proxyOptsForTarget(target) {
    const found = super.proxyOptsForTarget(target);
    if (target.protocol === "https:") {
      if (!nodes || !target.hash) throw new Error(`No certificate is known for ${target}`);
      found.agent = nodes.agentFor(decodeURIComponent(target.hash.slice(1)));
      target.hash = "";
    }
    return found;
  }

  async removeRoute(path) {
    const route = await this._routes.get(path);
    if (route && nodes) nodes.forget(`${route.user}/${route.server_name ?? ""}`);
    return super.removeRoute(path);
  }

  receive(request, isSocket) {
    const place = origins.placeOf(request);
    const port = request.socket.localPort;
    request.gpufarm = { place, isHub: !place, isWelcome: isWelcome(request, isSocket), port };
    const { isHub } = request.gpufarm;
    const cookies = request.gpufarm.isWelcome ? cookiesFor(request.headers.cookie, isHub, port) : undefined;
    if (cookies) request.headers.cookie = cookies;
    else delete request.headers.cookie;
  }

  async handleProxyWeb(request, response) {
    this.receive(request, false);
    if (request.gpufarm.isHub && killer(request)) {
      response.writeHead(200, { "Content-Type": "text/javascript", "Service-Worker-Allowed": "/" });
      response.end(killer(request));
    } else if (await this.targetForReq(request).catch(() => undefined)) {
      return super.handleProxyWeb(request, response);
    } else if (isPage(request) || request.url.startsWith("/hub/")) {
      response.writeHead(302, { Location: origins.atHub(request.url) });
      response.end();
    } else {
      response.writeHead(424, { "Content-Type": "application/json" }); // as the hub says it
      response.end(JSON.stringify({ message: "This notebook server does not run." }));
    }
  }

  handleProxyWs(request, socket, head) {
    this.receive(request, true);
    return super.handleProxyWs(request, socket, head);
  }
}

const proxy = new Front({
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

proxy.proxy.on("proxyRes", (answer, request) => guard(answer.headers, request.gpufarm));
proxy.proxy.on("proxyReqWs", (outgoing, request) => {
  for (const event of ["upgrade", "response"]) {
    outgoing.on(event, (answer) => guard(answer.headers, request.gpufarm));
  }
});

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
for (const port of origins.ports) {
  const server = net.createServer((socket) => proxy.proxyServer.emit("connection", socket));
  server.on("error", (error) => {
    log.error(error.message);
    process.exit(1);
  });
  server.listen(port);
}
if (nodes) {
  const gate = nodes.gate(TLS, (request, response) => {
    request.gpufarm = { isHub: true, isWelcome: false, port: 0 };
    delete request.headers["x-gpufarm-client"];
    proxy.proxy.web(request, response, { target: options.hub }, () => {
      if (!response.headersSent) response.writeHead(503);
      response.end();
    });
  });
  gate.on("error", (error) => {
    log.error(error.message);
    process.exit(1);
  });
  gate.listen(Number(nodesPort));
}
proxy.apiServer.listen(Number(options["api-port"]), "127.0.0.1");
