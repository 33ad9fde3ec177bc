// What INDIGO IAM tells a client about a user. Group names have no leading slash in `groups` (IAM's own profile,
// scope `profile`) and one in `wlcg.groups` (WLCG Common JWT Profiles 1.0, scopes `wlcg` and `wlcg.groups`).

export const SCOPES = ['openid', 'offline_access', 'profile', 'email', 'address', 'wlcg', 'wlcg.groups'];

/** Scope -> the claims it gives, in oidc-provider's form. */
export const CLAIMS = {
  openid: ['sub'],
  profile: ['name', 'given_name', 'family_name', 'preferred_username', 'organisation_name', 'groups'],
  email: ['email', 'email_verified'],
  address: ['address'],
  wlcg: ['wlcg.ver'],
  'wlcg.groups': ['wlcg.groups'],
};

/** @param user {name, sub, given_name, family_name, email, groups}. @param {string} organisation. @returns all claims. */
export function claimsOf(user, organisation) {
  return {
    sub: user.sub,
    name: `${user.given_name} ${user.family_name}`,
    given_name: user.given_name,
    family_name: user.family_name,
    preferred_username: user.name,
    organisation_name: organisation,
    groups: user.groups,
    email: user.email,
    email_verified: true,
    'wlcg.ver': '1.0',
    'wlcg.groups': user.groups.map((group) => `/${group}`),
  };
}
