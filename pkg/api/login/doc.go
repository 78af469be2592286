// Package login serves package auth over HTTP, below /auth: registering and logging
// in by e-mail or through other providers, sessions, and linked idents.
//
// # The way of a login
//
//	POST /auth/email
//	  kit.Router       filters: CORS, cross-site request forgery
//	  handler.email    reads the form or JSON body into auth.Credentials
//	  kit.Calls.Write  makes the call on behalf of the client
//	  auth.Service     Login or Register: checks limits and password, writes the session
//	  cookies          set the session's token; 204, or a redirect for an HTML form
//
//	GET /auth/{provider}   auth.Service.BeginOAuth; a cookie holds the flow's secret; 302
//	GET /auth/callback     auth.Service.FinishOAuth, if the cookie fits; 302 to Success or Failure
//	POST /auth/callback    of Apple: 303 to the same as GET, since the cookie is not sent with it
//	GET /auth/idents/{uuid}/token  auth.Service.ProviderToken
//
//	GET  /auth/authorize   a page that asks whether to log in for an application; its links and its form
//	                       lead to FinishOAuth or Login, which issue a code; 302 to the application
//	POST /auth/token       auth.Service.ExchangeCode: the code becomes the token of a session
//
// Any other request goes through Sessions once it needs to know its user: a bearer token or
// the session's cookie is given to auth.Service.Authenticate.
//
// A browser that has to be sent on, by a link in a mail or from a provider, is
// redirected to a URL of the configuration, with the outcome in its query. A request
// of an application chooses one of those that the configuration lists.
package login
