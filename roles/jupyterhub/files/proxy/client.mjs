// SPDX-License-Identifier: GPL-3.0-or-later
// Tells the hub from which address a request comes, in a header that nobody else can write.
//
// Clients can send any header, also X-Forwarded-For and X-Real-Ip, and programs on this machine reach the hub without
// the proxy. So the address is signed with the secret that only proxy and hub have.

import { createHmac } from "node:crypto";

const HEADER = "x-gpufarm-client";

export function nameClients(proxy, secret) {
  proxy.on("proxyRequest", (request) => {
    delete request.headers[HEADER];
    if (request.method !== "POST" || !request.url.startsWith("/hub/")) return;
    const address = request.socket.remoteAddress;
    const mark = createHmac("sha256", secret).update(address).digest("hex");
    request.headers[HEADER] = `${address} ${mark}`;
  });
}
