// Package login serves package account over HTTP, below /auth: registering and logging
// in by any method or through providers, second factors, sessions, and linked idents.
//
// # The path of a login
//
//	POST /auth/email
//	  kit.Router       filters: CORS, cross-site request forgery
//	  handler.email    reads the form or JSON body into passwords.Credentials
//	  kit.Calls.Write  makes the call on behalf of the client
//	  account.Service  Login or Registration: checks limits and password, writes the session
//	  cookies          set the session's token; 204, or a redirect for an HTML form
//
//	POST /auth/{method}    the same for methods of which account.Service.Methods says that they log in
//	GET /auth/{provider}   Providers.Begin; a cookie holds the flow's secret; 302
//	GET /auth/callback     Login.FinishProvider, if the cookie fits; 302 to Success or Failure
//	POST /auth/callback    of Apple: 303 to the same as GET, since the cookie is not sent with it
//	GET /auth/idents/{uuid}/token  Providers.ProviderToken
//
//	GET  /auth/authorize   a page that asks whether to log in for an application; its links and its forms
//	                       lead to a login, which issues a code; 302 to the application
//	POST /auth/token       Applications.Exchange: the code becomes the token of a session
//
// The routes of second factors are generated from the descriptions of the methods: factors.go, secondfactor.go.
//
// Any other request goes through Sessions once it needs to know its user: a bearer token or
// the session's cookie is given to Sessions.Authenticate of the service.
//
// A browser that comes from a link in a mail or from a provider is redirected to a URL of the configuration, with the
// outcome in its query. A request of an application chooses one of the URLs that the configuration lists.
package login
