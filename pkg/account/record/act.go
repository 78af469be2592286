package record

// Act is the act for which a secret was used.
type Act string

// The acts.
const (
	ActConfirmed  Act = "confirmed"  // an address was validated
	ActRegistered Act = "registered" // an address was registered, or added to an account
	ActPassword   Act = "password"   // a recovery has set a password
	ActLoggedIn   Act = "login"      // a login, or that an identity was linked
	ActAddress    Act = "address"    // a new address was confirmed
	ActUndone     Act = "undone"     // a change of address was undone
	ActKept       Act = "kept"       // a change of address can no longer be undone
	ActPasskey    Act = "passkey"    // a passkey was added
	ActChanged    Act = "changed"    // the user of a session has changed the password
	ActProven     Act = "proven"     // the user of a session has proven their identity again
	ActFirstAdmin Act = "first"      // the first admin was created
)
