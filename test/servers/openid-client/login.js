// Logs in to a belfry by openid-client, as its documentation says: node login.js ISSUER ADDRESS PASSWORD. It writes
// what it has seen as JSON. The user's browser is a form that is sent.
import * as client from 'openid-client'

const [issuer, address, password] = process.argv.slice(2)
const redirect = 'http://127.0.0.1:4711/in'

const config = await client.discovery(new URL(issuer), 'a client: 100% of it', undefined, client.None(), {
  algorithm: 'oauth2',
  execute: [client.allowInsecureRequests], // the issuer is on this machine
})

// begin begins a login, and returns what checks its end.
async function begin(parameters = {}) {
  const pkceCodeVerifier = client.randomPKCECodeVerifier()
  const expectedState = client.randomState()
  const url = client.buildAuthorizationUrl(config, {
    redirect_uri: redirect,
    code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier),
    code_challenge_method: 'S256',
    state: expectedState,
    ...parameters,
  })
  return { url, checks: { pkceCodeVerifier, expectedState } }
}

// leads returns where a reply leads to.
async function leads(url, init) {
  const reply = await fetch(url, { redirect: 'manual', ...init })
  const location = reply.headers.get('location')
  if (!location) throw new Error(`${url}: ${reply.status} ${await reply.text()}`)
  return new URL(location)
}

const { url, checks } = await begin()
const form = new URLSearchParams({ authorize: url.search.slice(1), login: address, password })
const back = await leads(new URL('/auth/email', issuer), { method: 'POST', body: form })
const tokens = await client.authorizationCodeGrant(config, back, checks)
const me = await client.fetchProtectedResource(config, tokens.access_token, new URL('/auth/me', issuer), 'GET')

// The library takes no reply of another issuer, and none without one.
const other = new URL(back)
other.searchParams.set('iss', 'https://other.example')
const without = new URL(back)
without.searchParams.delete('iss')

// failed returns how the library reports what has to fail.
async function failed(call) {
  try {
    await call()
  } catch (error) {
    return { code: error.code, error: error.error, cause: error.cause?.[0]?.parameters?.error }
  }
  return {}
}

const refused = await begin({ code_challenge_method: 'plain' })
const backRefused = await leads(refused.url)

console.log(JSON.stringify({
  metadata: config.serverMetadata(),
  type: tokens.token_type,
  token: tokens.access_token,
  me: await me.json(),
  other: await failed(() => client.authorizationCodeGrant(config, other, checks)),
  without: await failed(() => client.authorizationCodeGrant(config, without, checks)),
  refused: await failed(() => client.authorizationCodeGrant(config, backRefused, refused.checks)),
  invalid: await failed(() => client.fetchProtectedResource(config, 'no-token', new URL('/auth/me', issuer), 'GET')),
  again: await failed(() => client.authorizationCodeGrant(config, back, checks)),
}))
