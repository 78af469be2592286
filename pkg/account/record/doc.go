// Package record has the types of the records in which accounts are kept, and the one way in which these are read and
// written.
//
//	User                      one per user
//	Ident                     one per identity: an e-mail address, a user of a provider or a passkey
//	Session                   one per session and per API key
//	Token                     one per login, flow, challenge or setup in progress; it is used once
//	Mailbox                   one per address and kind of mails that were requested for it
//	Tries, Devices, Exports   one per user
//
// The first three have a store each, the others share the store of tokens.
//
// A type has a field for each field of its record that belfry itself reads or writes. Table decodes a record into its
// type, and writes the fields that a change makes different: all others, known or not, stay as they are stored.
//
// # Fates
//
// The tag left of each field says how much of it remains for a user who gets an account back. There are four ways:
//
//	a recovery by an address that was proven before
//	the first proof of the address that the account was registered with, by a recovery or a login by mail
//	the undoing of a change of address
//	a password that an admin has set
//
// The fates are:
//
//	stays
//	ends        it is removed, or becomes useless
//	is set      by the act itself
//	undoes      values later than the change end, earlier ones stay
//	otherwise   such a record does not concern the account
//
// A first proof removes all other idents. An undoing removes the idents that are later than the change, unless they
// restore an earlier one. Fields of a user that have no type here are the user's own, and stay. A test refuses a field
// without fates.
package record
