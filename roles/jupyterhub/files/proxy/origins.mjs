// SPDX-License-Identifier: GPL-3.0-or-later
// The hub's pages have one origin, the notebooks of each user another. A notebook's pages, and all that it answers,
// are its users' own programs, so nothing of a browser's rights at one origin reaches another one. No I/O.
//
// Cookies know no ports, and a name below the site's can set cookies for the site. So cookies that let somebody in
// have a prefix with which browsers accept them only from a server, for the whole host and no other (RFC 6265bis,
// 4.1.3), and the port in their names.

const HOST_ONLY = "__Host-Http-";
const KILLER = `self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.registration.unregister()));
`;

export class Origins {
  // hub: the hub's address. notebooks: "FIRST-LAST", ports of which each user has one, or a domain in which each
  // user has a name.
  constructor({ hub, notebooks }) {
    this.hub = new URL(hub);
    const [, first, last] = /^(\d+)-(\d+)$/.exec(notebooks) ?? [];
    this.domain = first ? "" : `.${notebooks}`;
    this.ports = [];
    for (let port = Number(first); port <= Number(last); port += 1) this.ports.push(port);
  }

  // The name under which the hub registers the notebooks of this origin; empty for the hub's own.
  placeOf(request) {
    if (this.domain) {
      const name = (request.headers.host ?? "").replace(/:\d+$/, "").toLowerCase();
      return name.endsWith(this.domain) ? name : "";
    }
    const port = request.socket.localPort;
    return this.ports.includes(port) ? `${this.hub.hostname}:${port}` : "";
  }

  // Where somebody is led who asks for a notebook that does not run.
  atHub(path) {
    const { pathname, search } = new URL(path, this.hub);
    return `${this.hub.origin}${pathname}${search}`;
  }
}

// Whether a page of the same origin, the user, or a link asks; what pages of other origins ask in any other way comes
// from nobody.
export function isWelcome({ method, headers }, isSocket) {
  const site = headers["sec-fetch-site"];
  // Browsers do not say it of web sockets; what is no browser never says it.
  if (isSocket || site === undefined) {
    return headers.origin === undefined || headers.origin === `https://${headers.host}`;
  }
  const isLink =
    headers["sec-fetch-mode"] === "navigate" &&
    headers["sec-fetch-dest"] === "document" &&
    ["GET", "HEAD"].includes(method);
  return site === "same-origin" || site === "none" || isLink;
}

export function isPage({ method, headers }) {
  return ["GET", "HEAD"].includes(method) && ["navigate", undefined].includes(headers["sec-fetch-mode"]);
}

const letsIn = (name) => name.startsWith("jupyterhub-");
const prefixOf = (port) => `${HOST_ONLY}${port}-`;

// The cookies of a request as hub or notebook set them; undefined for none.
export function cookiesFor(header, isHub, port) {
  const kept = [];
  for (const pair of (header ?? "").split(";").map((text) => text.trim())) {
    const name = pair.split("=", 1)[0];
    if (name.startsWith(prefixOf(port))) kept.push(pair.slice(prefixOf(port).length));
    else if (!isHub && !name.startsWith(HOST_ONLY) && !letsIn(name)) kept.push(pair);
  }
  return kept.filter(Boolean).join("; ") || undefined;
}

// The cookies of an answer (values of Set-Cookie) as the browser gets them.
export function cookiesFrom(values, isHub, port) {
  return (values ?? []).flatMap((value) => {
    const [pair, ...attributes] = value.split(";").map((text) => text.trim());
    const name = pair.includes("=") ? pair.split("=", 1)[0].trim() : "";
    const without = (...names) =>
      attributes.filter((attribute) => !names.includes(attribute.split("=", 1)[0].trim().toLowerCase()));
    if (isHub || letsIn(name)) {
      const kept = without("domain", "path", "secure", "httponly");
      return [[prefixOf(port) + pair, ...kept, "Path=/", "Secure", "HttpOnly"].join("; ")];
    }
    // Browsers may send one without a name as if its value were name and value.
    if (!name || name.toLowerCase().startsWith(HOST_ONLY.toLowerCase())) return [];
    return [[pair, ...without("domain")].join("; ")];
  });
}

// Change the headers of an answer, in place.
export function guard(headers, { isHub, isWelcome: welcome, port }) {
  const cookies = welcome ? cookiesFrom(headers["set-cookie"], isHub, port) : [];
  if (cookies.length) headers["set-cookie"] = cookies;
  else delete headers["set-cookie"];
  if (isHub) {
    // Windows that a notebook opened, or that opened it, cannot reach each other.
    headers["cross-origin-opener-policy"] = "same-origin";
    return;
  }
  // Both are about the whole host, whatever the port.
  delete headers["clear-site-data"];
  delete headers["strict-transport-security"];
}

// What a service worker is replaced by that a notebook left at the hub's origin when both had one.
export function killer(request) {
  return request.headers["service-worker"] === "script" ? KILLER : "";
}
