package record

import "time"

// Purpose is the purpose of a mail, and of the token in it.
type Purpose string

// The purposes. Those of notices begin with NoticePurpose.
const (
	PurposeValidate   Purpose = "validate"    // proves an address
	PurposeRecover    Purpose = "recover"     // lets a new password be set
	PurposeTaken      Purpose = "taken"       // informs the owner of an address of an attempt to register it; no token
	PurposeCode       Purpose = "code"        // logs in, by a code
	PurposeLink       Purpose = "link"        // logs in, by a link
	PurposeChange     Purpose = "change"      // confirms a new address
	PurposeUndo       Purpose = "undo"        // undoes the change of an address
	PurposeNone       Purpose = "nothing"     // no mail is sent; the reply is the same
	PurposeFirstAdmin Purpose = "first-admin" // of a link that no mail has

	NoticePurpose = "notice-"
)

// Mailbox is the record of the mails of one kind that were requested for an address, and of what was in them.
type Mailbox struct {
	Meta

	Address string `record:"login" left:"stays, stays, stays, stays"`
	// a pending mail is composed by the state of the account at that time
	Request MailRequest `record:"mail" left:"stays, stays, stays, stays"`
	// id of the last MailRequest whose mail was sent
	Sent    string    `record:"_sent" left:"stays, stays, stays, stays"`
	Expires time.Time `record:"expires" left:"stays, stays, stays, stays"`
	// bound to the epoch, or to a change of address
	Tokens   []MailedToken `record:"_issued" left:"ends, ends, ends, ends"`
	Logins   []MailLogin   `record:"_logins" left:"ends, ends, ends, ends"`   // bound to the epoch
	Used     []UsedSecret  `record:"_used" left:"stays, stays, stays, stays"` // hashes of secrets that are used up
	Failures Failures      `record:"_failedLogins" left:"stays, stays, stays, stays"`

	// of the person who gets the mail, as far as it is known when the mail is requested
	Language string `record:"_language" left:"stays, stays, stays, stays"`

	Change *PendingChange `record:"_change" left:"ends, ends, ends, stays"`

	// Of notices.
	User  string   `record:"_user" left:"ends, ends, ends, ends"`
	Times []string `record:"_times" left:"stays, stays, stays, stays"` // of the latest ones
	About string   `record:"_about" left:"stays, stays, stays, stays"` // of the last one
}

// MailRequest is the last mail that was requested. Events contain it, so it holds no secret.
type MailRequest struct {
	ID  string  `json:"id"`
	For Purpose `json:"for"`
	At  string  `json:"at"`
}

// MailedToken is the record of a token that was mailed.
type MailedToken struct {
	Hash  string  `json:"hash"`
	For   Purpose `json:"for"`
	Until string  `json:"until"`
	Mail  string  `json:"mail"` // id of the MailRequest

	// The account that a token for recovery was made for. It is useless once the
	// address has another user, or the user another epoch, that is another password.
	User  string `json:"user,omitempty"`
	Epoch uint64 `json:"epoch,omitempty"`

	Change string `json:"change,omitempty"` // the id of an AddressChange of the user
	Proven bool   `json:"proven,omitempty"` // of a token that undoes it: the address was proven when it was requested
}

// Recovers reports whether a token was made for an account and its current password.
func (t MailedToken) Recovers(user User) bool {
	return user.UUID != "" && t.User == user.UUID && t.Epoch == user.Epoch
}

// MailLogin is a login by mail in progress. It is bound to the browser, or the pending login, that requested it: the
// code by itself, which has six digits, is useless. So a plain hash of it suffices.
type MailLogin struct {
	Binding string `json:"binding"`      // digest of the secret that has to be sent with the code
	Method  string `json:"method"`       // MethodCode or MethodLink
	To      string `json:"to,omitempty"` // the address, where the mailbox is that of a user
	Mail    string `json:"mail"`         // id of the MailRequest
	Until   string `json:"until"`
	Hash    string `json:"hash,omitempty"`  // of the code, or of the token of the link; "" until the mail is composed
	Tries   int    `json:"tries,omitempty"` // wrong codes

	// The account that it is for, "" for none. It is useless once the user has another epoch.
	User  string `json:"user,omitempty"`
	Epoch uint64 `json:"epoch,omitempty"`
}

// IsFor reports whether a login is for an account, as it is now.
func (l MailLogin) IsFor(user User) bool {
	return user.UUID != "" && l.User == user.UUID && l.Epoch == user.Epoch && !user.MarkedDisabled
}

// UsedSecret is a token, a code or a link of a mail that was used. It is in the mailbox, so that it is written
// atomically with the use: of two concurrent uses one succeeds, and the other finds this.
type UsedSecret struct {
	Hash    string  `json:"hash"`
	For     Purpose `json:"for"`
	Act     Act     `json:"act"`
	Until   string  `json:"until"`
	Browser string  `json:"browser,omitempty"` // digest of the cookie of the browser
	Binding string  `json:"binding,omitempty"` // of a login by mail

	// The account that a token for recovery was made for.
	User  string `json:"user,omitempty"`
	Epoch uint64 `json:"epoch,omitempty"`
}

// PendingChange is the change that the last mail about a change of address is about.
type PendingChange struct {
	Mail   string `json:"mail"` // id of the MailRequest
	User   string `json:"user"`
	Epoch  uint64 `json:"epoch"`
	Change string `json:"change"`
	Proven bool   `json:"proven,omitempty"`
}
