// Storage of oidc-provider in one JSON file, so that registered clients and sessions survive a restart and a reboot.
// The interface is the library's "adapter": upsert, find, findByUid, findByUserCode, consume, destroy, revokeByGrantId.
import fs from 'node:fs';

const now = () => Math.floor(Date.now() / 1000);

/** @param {string} file path of the JSON file; its folder exists. @returns a class for oidc-provider's `adapter`. */
export function fileStore(file) {
  const entries = new Map(fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, 'utf8')) : []);

  function write() {
    for (const [key, { expires }] of entries) if (expires && expires <= now()) entries.delete(key);
    fs.writeFileSync(`${file}.new`, JSON.stringify([...entries]), { mode: 0o600 });
    fs.renameSync(`${file}.new`, file);
  }

  return class FileAdapter {
    constructor(model) {
      this.model = model;
    }

    async upsert(id, payload, expiresIn) {
      entries.set(`${this.model}:${id}`, { payload, expires: expiresIn ? now() + expiresIn : null });
      write();
    }

    async find(id) {
      const entry = entries.get(`${this.model}:${id}`);
      return entry && (!entry.expires || entry.expires > now()) ? entry.payload : undefined;
    }

    async findBy(member, value) {
      for (const [key, { payload }] of entries) {
        if (key.startsWith(`${this.model}:`) && payload[member] === value) return this.find(key.slice(this.model.length + 1));
      }
      return undefined;
    }

    async findByUid(uid) {
      return this.findBy('uid', uid);
    }

    async findByUserCode(userCode) {
      return this.findBy('userCode', userCode);
    }

    async consume(id) {
      entries.get(`${this.model}:${id}`).payload.consumed = now();
      write();
    }

    async destroy(id) {
      entries.delete(`${this.model}:${id}`);
      write();
    }

    async revokeByGrantId(grantId) {
      for (const [key, { payload }] of entries) if (payload.grantId === grantId) entries.delete(key);
      write();
    }
  };
}
