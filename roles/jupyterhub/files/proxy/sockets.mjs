// SPDX-License-Identifier: GPL-3.0-or-later
// A route that is set anew ends the web sockets that came by it.
//
// Who opened a web socket is asked when it is opened and never again. So when somebody must not use a notebook any
// more, the hub sets its route anew. Everybody else's browser connects again within a second, and the notebook asks
// the hub who they are.

export function endWithTheirRoute(proxy) {
  const open = new Map(); // route to sockets

  const targetForReq = proxy.targetForReq.bind(proxy);
  proxy.targetForReq = async (request) => {
    const found = await targetForReq(request);
    if (found && request.headers.upgrade) keep(found.prefix, request.socket);
    return found;
  };

  function keep(route, socket) {
    if (!open.has(route)) open.set(route, new Set());
    const sockets = open.get(route).add(socket);
    socket.once("close", () => {
      sockets.delete(socket);
      if (sockets.size === 0 && open.get(route) === sockets) open.delete(route);
    });
  }

  const addRoute = proxy.addRoute.bind(proxy);
  proxy.addRoute = async (path, data) => {
    const added = await addRoute(path, data);
    const sockets = open.get(path.replace(/\/+$/, ""));
    if (sockets) for (const socket of sockets) socket.destroy();
    return added;
  };
}
