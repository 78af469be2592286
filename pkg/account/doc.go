// Package auth registers users, logs them in by e-mail and password or through
// OAuth providers, and manages their sessions.
//
// Its state is in stores and is written through package store:
//
//   - Users: one object for each user. password holds the encoded hash and never
//     leaves the server; _epoch counts how often all sessions were ended.
//   - Idents: one object for each identity, that is an e-mail address or a user
//     of a provider. Its uuid is made of both and is created only if absent, so
//     that an identity never belongs to two users. A mapping maintains
//     Users.idents.
//   - Sessions: one object for each session, found by its id. Only a hash of the
//     secret half of the token is stored.
//   - Tokens: one object for each pending login, challenge and app that is being set up; the tries of
//     second factors of each user; one for each mailbox (an address and the kind of mails that
//     were requested for it), and one for each OAuth flow in progress.
//
// # Registration by e-mail
//
// With validation first, nothing exists before the token of the mail:
//
//	Register ── no token ──► mail requested ──► listener mail: DeliverMail
//	                                                     │ token
//	            ┌───────── form, sent again ◄── FollowLink: OpenRegistration
//	            ▼
//	Register ── token ──► verify, consume token ──► claim ident ──► create user ──► session
//
// With PostValidation the user is created first, and the link marks the ident:
//
//	Register ──► claim ident ──► create user ──► session
//	                                  └─► mail requested ──► DeliverMail ──► FollowLink: AddressValidated
//
// While somebody is logged in, Register adds the address to their account.
//
// # Login
//
//	Login ──► limit of the network address ──► delay of the account ──► compare hash
//	             right: session; failures reset          wrong: failure recorded in the ident
//
// # Second factors
//
//	any login ── proof ──► completeLogin ──┬─ no second factor is missing ──► session
//	                                       └─ pending login ──► CompleteLogin ── try counted, factor verified, consumed ──► session
//	a session ── requireFresh ──► StepUp ── password or second factor ──► another session in its place
//
// # Recovery
//
//	RequestRecovery ──► mail requested ──► DeliverMail ──► FollowLink: OpenRecovery
//	                                                             │ token
//	Recover ── ident proven ───────────────► set password, end all sessions
//	        ── not proven, address added ──► the address moves to an account of its own
//	        ── not proven otherwise ───────► the same as proven; removes all other idents
//
// An ident is proven when somebody had the address and the account at once.
//
// # OAuth
//
//	BeginOAuth ──► flow stored, bound to the browser ──► redirect to the provider
//	                                                          │ callback
//	FinishOAuth ──► flow consumed ──► profile fetched ──┬─ identity is known ──► session
//	                                                    ├─ identity is new ────► claim ident ──► create user ──► session
//	                                                    └─ flow was to link ───► ident linked to the session's user
//
// # Two records without a transaction
//
// Registration writes the ident first, which claims the identity, and then the
// user together with the event Register in one atomic write. A crash in between
// leaves an ident without a user. It does not block the address: the next
// registration adopts the ident and the uuid in it. The user's record is created
// only if absent, so of two that adopt at once one succeeds.
//
// # Ending sessions
//
// A session stores the epoch of its user. The write that changes a password
// increments the epoch, which ends all sessions atomically, including those that
// an index does not yet find.
package account
