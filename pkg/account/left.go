package account

// What is left of an account by whoever gets it back. A field of the records of authentication that is not in these tables is one of
// which nobody has decided that: a test fails then.

// fate is what becomes of a field.
type fate string

const (
	stays    fate = "stays"
	ends     fate = "ends"      // it is removed, or of no use any more
	isSet    fate = "is set"    // by the act itself
	undoes   fate = "undoes"    // what is younger than the change ends, what is older stays
	isOthers fate = "otherwise" // a record of it has nothing to do with the account
)

// left is what is left of a field by a recovery by an address that was proven before, by the first proof of the address that the account
// was registered with (a recovery or a login by mail), by the undoing of a change of address, and by a password that an admin has set.
type left struct{ recovery, firstProof, undoing, reset fate }

// leftOfUsers are the fields of users. Others are the user's own, and stay.
var leftOfUsers = map[string]left{
	fieldPassword:        {isSet, isSet, ends, isSet}, // a login by mail removes it
	fieldEpoch:           {isSet, isSet, isSet, isSet},
	markByMail:           {isSet, isSet, ends, ends},
	fieldDeviceEpoch:     {isSet, isSet, isSet, isSet},
	fieldFactors:         {stays, ends, undoes, stays},
	fieldChanges:         {ends, ends, ends, stays}, // a recovery ends the rights of its own address alone
	fieldUnlinked:        {stays, isSet, isSet, stays},
	fieldDeleteAt:        {ends, ends, undoes, stays},
	fieldDeletionPlanned: {ends, ends, undoes, stays},
	fieldDeferred:        {ends, ends, undoes, stays},
	fieldAdmin:           {stays, stays, stays, stays}, // an admin's decision
	markAdmin:            {stays, stays, stays, stays},
	fieldDisabled:        {stays, stays, stays, stays},
	markDisabled:         {stays, stays, stays, stays},
}

// leftOfIdents are the fields of the idents that are left. A first proof removes all idents but its own, an undoing those that are younger
// than the change, unless they restore what is older.
var leftOfIdents = map[string]left{
	fieldUser:           {stays, stays, stays, stays},
	"type":              {stays, stays, stays, stays},
	"_id":               {stays, stays, stays, stays},
	fieldProfile:        {stays, stays, stays, stays},
	"validated":         {isSet, isSet, isSet, stays},
	fieldProven:         {stays, isSet, isSet, stays},
	fieldProvenAt:       {stays, isSet, stays, stays},
	fieldAdded:          {stays, stays, stays, stays}, // one that was added and nobody had proven moves to an account of its own
	fieldEpoch:          {stays, stays, stays, stays}, // of the session that has linked it
	fieldFailures:       {isSet, isSet, isSet, isSet},
	"lastUsed":          {stays, stays, stays, stays},
	fieldTokens:         {stays, ends, undoes, stays}, // with the ident of the provider
	fieldLease:          {stays, ends, undoes, stays},
	fieldName:           {stays, ends, undoes, stays}, // of a passkey, with its ident
	fieldCredential:     {stays, ends, undoes, stays},
	fieldCloneSuspected: {stays, ends, undoes, stays},
}

// leftOfSessions are the fields of sessions and API keys. All of them end with the epoch of their user, which each of the acts changes.
var leftOfSessions = func() map[string]left {
	fields := map[string]left{}
	for _, name := range []string{
		fieldUser, "type", fieldExpires, "lastUsed", "address", "userAgent", "_hash", fieldEpoch, "application", fieldName, fieldRule,
		fieldMethods, fieldAAL, fieldAuthenticatedAt, fieldLimited, fieldPasswordSet,
	} {
		fields[name] = left{ends, ends, ends, ends}
	}
	return fields
}()

// leftOfTokens are the fields of what is in progress: of mailboxes, logins, devices, tries.
var leftOfTokens = map[string]left{
	// Of all, and bound to the epoch of the user: codes for applications, logins that wait for a second factor.
	fieldExpires:         {stays, stays, stays, stays},
	fieldEpoch:           {ends, ends, ends, ends},
	fieldLinkUser:        {ends, ends, ends, ends},
	fieldMethods:         {ends, ends, ends, ends},
	fieldAAL:             {ends, ends, ends, ends},
	fieldAuthenticatedAt: {ends, ends, ends, ends},
	fieldLimited:         {ends, ends, ends, ends},
	"type":               {ends, ends, ends, ends},
	fieldTries:           {ends, ends, ends, ends},
	fieldInFlight:        {ends, ends, ends, ends},
	fieldUse:             {stays, stays, stays, stays}, // nothing else is left of what was used, and it is of no use
	fieldApplication:     {ends, ends, ends, ends},
	fieldSession:         {ends, ends, ends, ends},
	fieldReplayed:        {ends, ends, ends, ends},
	fieldTOTPSecret:      {ends, ends, ends, ends}, // bound to a session
	fieldPurpose:         {ends, ends, ends, ends}, // of a passkey's challenge: bound to a session, or to a login that waits

	// Of a login at a provider, which is bound to a browser: linking needs a session.
	fieldProvider: {isOthers, isOthers, isOthers, isOthers},
	fieldBrowser:  {isOthers, isOthers, isOthers, isOthers},
	fieldSecret:   {isOthers, isOthers, isOthers, isOthers},

	// Of mailboxes.
	fieldLogin:        {stays, stays, stays, stays},
	fieldMail:         {stays, stays, stays, stays}, // a mail that is on its way is composed by what the account is then
	fieldSent:         {stays, stays, stays, stays},
	fieldMailedTokens: {ends, ends, ends, ends},     // bound to the epoch, or to a change of address
	fieldMailLogins:   {ends, ends, ends, ends},     // bound to the epoch
	fieldUsed:         {stays, stays, stays, stays}, // hashes of what is of no use any more
	fieldChange:       {ends, ends, ends, stays},
	fieldTimes:        {stays, stays, stays, stays}, // how many notices there were
	fieldAbout:        {stays, stays, stays, stays},

	fieldDevices:      {ends, ends, ends, ends}, // by fieldDeviceEpoch: the hashes stay, and are of no device
	fieldFailures:     {stays, stays, stays, stays},
	fieldLastStep:     {stays, stays, stays, stays}, // no code of an app is accepted twice
	fieldExports:      {stays, stays, stays, stays},
	fieldExportID:     {stays, stays, stays, stays}, // an export in progress was authorized when it began
	fieldExportLeased: {stays, stays, stays, stays},
}
