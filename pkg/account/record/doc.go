// Package record has the types of the records in which accounts are kept, and the one way in which these are read and
// written.
//
//   - User: one for each user.
//   - Ident: one for each identity, that is an e-mail address, a user of a provider or a passkey.
//   - Session: one for each session and each API key.
//   - Token: one for each login, flow, challenge or setup in progress, which is used once.
//   - Mailbox: one for each address and kind of mails that were requested for it.
//   - Tries, Devices, Exports: one for each user.
//
// The first three have a store each, the others share the store of tokens.
//
// A type has a field for each field of its record that belfry itself reads or writes. Table decodes a record into its
// type, and writes the fields that a change makes different: all others, known or not, stay as they are stored.
//
// # Fates
//
// Each field says in its tag left what is left of it by whoever gets an account back, by each of four acts: a recovery by an
// address that was proven before; the first proof of the address that the account was registered with, by a recovery or a
// login by mail; the undoing of a change of address; a password that an admin has set. The fates are:
//
//	stays
//	ends        it is removed, or of no use any more
//	is set      by the act itself
//	undoes      what is younger than the change ends, what is older stays
//	otherwise   a record of it has nothing to do with the account
//
// A first proof removes all idents but its own, an undoing those that are younger than the change, unless they restore what
// is older. Fields of a user that have no type here are the user's own, and stay. A test refuses a field without fates.
package record
