package record

// Methods by which a user proves their identity; besides these, the name of a provider. They are in sessions and in
// events.
const (
	MethodPassword = "password"
	MethodLink     = "link"     // the link of a mail
	MethodCode     = "code"     // the code of a mail
	MethodPasskey  = "passkey"  // a signature by an authenticator that has verified its user
	MethodTOTP     = "totp"     // a code of an authenticator app
	MethodRecovery = "recovery" // a recovery code
)

// Types of second factors.
const (
	FactorTOTP    = "totp"
	FactorEmail   = "email"   // codes by mail
	FactorPasskey = "passkey" // any passkey of the user
	// FactorRecovery is a recovery code, which takes the place of a second factor once.
	FactorRecovery = "recovery"
)

// PasskeyType is the type of idents that are passkeys.
const PasskeyType = "passkey"
