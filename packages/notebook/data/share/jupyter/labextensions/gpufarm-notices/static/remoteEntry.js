// SPDX-License-Identifier: GPL-3.0-or-later
// Shows in JupyterLab what the hub has to tell the user, and leads to the page of the user's packages. JupyterLab
// loads it as a module of webpack's federation: it calls init with the packages that it shares, then get.
(() => {
  const EVERY = 60000; // milliseconds between two questions
  let shared;

  async function load(name) {
    const [version] = Object.values(shared[name]);
    return (await version.get())();
  }

  // A card of the launcher, where there are shared environments to add packages to.
  function leadToPackages(app, launcher) {
    const command = "gpufarm:packages";
    if (!launcher || app.commands.hasCommand(command)) return;
    const page = `${app.serviceManager.serverSettings.baseUrl}gpufarm/packages`;
    app.commands.addCommand(command, {
      label: "My packages",
      caption: "Packages that you installed over the environments: list, save, install and remove them",
      execute: () => void window.open(page, "_blank", "noopener"),
    });
    launcher.add({ command, category: "Other", rank: 100 });
  }

  async function activate(app, launcher) {
    const { Notification } = await load("@jupyterlab/apputils");
    const { ServerConnection } = await load("@jupyterlab/services");
    const settings = app.serviceManager.serverSettings;
    let shown = "";
    let id = "";

    async function ask() {
      // What a page nobody looks at asks for would count as use of the notebook.
      if (document.hidden) return;
      try {
        const answer = await ServerConnection.makeRequest(`${settings.baseUrl}gpufarm/notice`, {}, settings);
        if (!answer.ok) return;
        const { notice, environments } = await answer.json();
        if (environments) leadToPackages(app, launcher);
        if (notice === shown) return;
        if (id) Notification.dismiss(id);
        id = notice ? Notification.warning(notice, { autoClose: false }) : "";
        shown = notice;
      } catch (error) {
        console.warn("The notebook server does not answer; asking again.", error);
      }
    }

    // What is told earlier is not shown. Not awaited: JupyterLab counts as restored when this function has ended.
    app.restored.then(() => {
      ask();
      window.setInterval(ask, EVERY);
      document.addEventListener("visibilitychange", ask);
    });
  }

  window._JUPYTERLAB = window._JUPYTERLAB || {};
  window._JUPYTERLAB["gpufarm-notices"] = {
    init: (scope) => {
      shared = scope;
    },
    get: async () => {
      const { ILauncher } = await load("@jupyterlab/launcher");
      const plugin = { id: "gpufarm-notices:plugin", autoStart: true, optional: [ILauncher], activate };
      return () => ({ __esModule: true, default: plugin });
    },
  };
})();
