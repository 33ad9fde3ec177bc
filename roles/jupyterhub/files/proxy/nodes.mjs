// SPDX-License-Identifier: GPL-3.0-or-later
// Notebooks on other machines: the proxy reaches them by TLS, and they reach the hub through the proxy by TLS.
//
// A notebook shows a certificate that the hub's authority for nodes has signed for its owner and for nobody else. Any
// job may listen at an address on a node, so an address tells nothing. Notebooks ask for the proxy's certificate in turn.

import { createHash } from "node:crypto";
import fs from "node:fs";
import https from "node:https";

// The name in the certificate of a notebook; gpufarm_hub.slurm.handover computes the same.
export function nameOf(owner) {
  return `${createHash("sha256").update(owner).digest("hex").slice(0, 40)}.notebook`;
}

export class Nodes {
  // certificate: path of certificate and key in one file (PEM). authority: path of that of the authority for nodes.
  constructor({ certificate, authority }) {
    const pem = fs.readFileSync(certificate);
    this.credentials = { cert: pem, key: pem, ca: fs.readFileSync(authority) };
    this.agents = new Map();
  }

  // What connects to the notebook of an owner, and to nothing else.
  agentFor(owner) {
    if (!this.agents.has(owner)) {
      // Node.js compares the certificate with servername (tls.checkServerIdentity), not with the address.
      const identity = { servername: nameOf(owner), rejectUnauthorized: true };
      this.agents.set(owner, new https.Agent({ ...this.credentials, ...identity, keepAlive: true }));
    }
    return this.agents.get(owner);
  }

  forget(owner) {
    this.agents.get(owner)?.destroy();
    this.agents.delete(owner);
  }

  // The hub's REST API for notebooks on nodes; tokens and credentials of munge are checked there.
  gate(tls, forward) {
    return https.createServer({ ...tls, ...this.credentials }, (request, response) => {
      if (/^\/hub\/api([/?]|$)/.test(request.url)) {
        delete request.headers.cookie; // of browsers, which come by other ways
        forward(request, response);
      } else {
        response.writeHead(404);
        response.end();
      }
    });
  }
}
