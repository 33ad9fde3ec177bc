// What INDIGO IAM does otherwise than oidc-provider: its access tokens are JWTs, it grants offline_access without being
// told to ask the user again, and it lists its groups.
import crypto from 'node:crypto';

const PAGE = 10; // groups in an answer, unless a client asks for another number

const encoded = (data) => Buffer.from(JSON.stringify(data)).toString('base64url');

/**
 * Make access tokens JWTs with the claims of IAM's own profile, which has no groups.
 *
 * The library itself makes a JWT only for a service with a name, and then takes none at /userinfo. So the JWT is the
 * identifier under which the library keeps a token. Unlike IAM, it takes no JWT at /introspect and /revoke.
 *
 * @param provider an oidc-provider. @param {KeyObject} key private RSA key. @param {string} kid its name in the JWKS.
 */
export function signAccessTokens(provider, key, kid) {
  const tokens = provider.AccessToken.prototype;
  const identifierOf = tokens.generateTokenId;
  tokens.generateTokenId = function generateTokenId() {
    const jti = identifierOf.call(this);
    const iat = Math.floor(Date.now() / 1000);
    const claims = {
      iss: provider.issuer,
      sub: this.accountId,
      client_id: this.clientId,
      scope: this.scope,
      iat,
      exp: iat + this.expiration,
      jti,
    };
    const text = `${encoded({ kid, alg: 'RS256' })}.${encoded(claims)}`;
    return `${text}.${crypto.sign('RSA-SHA256', Buffer.from(text), key).toString('base64url')}`;
  };
}

/** Middleware: the library drops offline_access unless a client says prompt=consent. */
export async function grantOfflineAccess(ctx, next) {
  const asked = String(ctx.query.scope ?? '').split(' ');
  if (ctx.path === '/authorize' && !ctx.query.prompt && asked.includes('offline_access')) {
    ctx.query = { ...ctx.query, prompt: 'consent' };
  }
  return next();
}

/**
 * The list of groups, as SCIM 2.0 has lists (RFC 7644, section 3.4.2): for everybody with an access token.
 *
 * @param provider an oidc-provider. @param {string[]} groups names of all groups. @returns a middleware.
 */
export function groupSearch(provider, groups) {
  return async (ctx, next) => {
    if (ctx.path !== '/iam/group/search') return next();
    const token = await provider.AccessToken.find(ctx.get('Authorization').replace(/^Bearer /i, ''));
    if (!token) return ctx.throw(401);
    const number = (name, preset) => Math.max(Number.parseInt(ctx.query[name], 10) || preset, 1);
    const [start, size] = [number('startIndex', 1), number('count', number('itemsPerPage', PAGE))];
    const shown = groups.slice(start - 1, start - 1 + size);
    ctx.body = {
      schemas: ['urn:ietf:params:scim:api:messages:2.0:ListResponse'],
      totalResults: groups.length,
      startIndex: start,
      itemsPerPage: shown.length,
      Resources: shown.map((name) => ({ id: name, displayName: name, meta: { resourceType: 'Group' } })),
    };
    return undefined;
  };
}
