// Serves oidc-provider: serve.js HOST PORT CLIENT SECRET REDIRECT. Its user is logged in and has consented to everything, without a
// page. POST /control takes a JSON object that changes what the provider does from then on:
//
//   sub      the id of the user
//   claims   the claims of the user, of those in names, at the userinfo endpoint
//   signed   they are in ID tokens as well
//   insert   text after the first brace of each userinfo document: a member again
//   mark     userinfo documents begin with a BOM
//   latin1   userinfo documents are in Latin-1
//   error    the code of the error with which a login ends
//   late     seconds by which the provider's clock is late
//   rotate   the provider gets another key; "hidden": its document of keys still has the former one
//   client   members of the client's registration, for a provider with another key
import { createServer } from 'node:http'
import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { Provider } from 'oidc-provider'

const [host, port, client, secret, redirect] = process.argv.slice(2)
const issuer = `http://${host}:${port}`
let does = { claims: {} }

const names = ['sub', 'name', 'nickname', 'picture', 'email', 'email_verified', 'groups', 'address', 'locale']

const now = Date.now
Date.now = () => now() - (does.late ?? 0) * 1000

const account = (ctx, id) => ({
  accountId: id,
  claims: (use) => ({ ...(use === 'userinfo' || does.signed ? does.claims : {}), sub: id }),
})

function start() {
  const key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' })
  const provider = new Provider(issuer, {
    clients: [{ client_id: client, client_secret: secret, redirect_uris: [redirect], ...does.client }],
    jwks: { keys: [{ ...key, kid: randomUUID(), use: 'sig', alg: 'RS256' }] },
    cookies: { keys: [randomUUID()] },
    claims: { openid: names },
    conformIdTokenClaims: false,
    features: { devInteractions: { enabled: false }, encryption: { enabled: true } },
    enabledJWA: { idTokenSigningAlgValues: ['RS256', 'HS256'] },
    ttl: { AccessToken: 3600, IdToken: 600, Session: 3600, Grant: 3600, Interaction: 3600 },
    interactions: { url: (ctx, interaction) => `/interaction/${interaction.uid}` },
    findAccount: account,
    loadExistingGrant: async (ctx) => {
      const grant = new ctx.oidc.provider.Grant({ clientId: client, accountId: ctx.oidc.session.accountId })
      grant.addOIDCScope('openid email profile')
      await grant.save()
      return grant
    },
  })
  provider.use(async (ctx, next) => {
    await next()
    if (ctx.oidc?.route !== 'userinfo' || ctx.status !== 200) return
    let text = JSON.stringify(ctx.body)
    if (does.insert) text = '{' + does.insert + ',' + text.slice(1)
    if (does.mark) text = '\ufeff' + text
    ctx.body = Buffer.from(text, does.latin1 ? 'latin1' : 'utf8')
    ctx.type = 'application/json'
  })
  return provider
}

let provider = start()
let keys // the provider whose keys are shown

async function control(req, res) {
  let text = ''
  for await (const chunk of req) text += chunk
  does = { claims: {}, ...JSON.parse(text) }
  const former = provider
  if (does.rotate || does.client) provider = start()
  keys = does.rotate === 'hidden' ? former : undefined
  res.writeHead(204).end()
}

createServer((req, res) => {
  if (req.url === '/control') return control(req, res)
  if (req.url.startsWith('/interaction/')) {
    const result = does.error ? { error: does.error, error_description: 'the provider says why' } : { login: { accountId: does.sub ?? 'ada' } }
    return provider.interactionFinished(req, res, result)
  }
  const serving = req.url === '/jwks' ? keys ?? provider : provider
  return serving.callback()(req, res)
}).listen(Number(port), host)
