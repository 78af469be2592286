// Package account registers users, logs them in, manages their sessions and the protection of their accounts. It wires
// its subpackages, and other packages call it.
//
//	record       the types of the records, and how they are read and written
//	secret       secrets of random bits, hashes, codes as people type them
//	guess        limits of wrong guesses: by network address, account, code
//	sessions     sessions, and what they may do; codes for applications
//	once         secrets that are valid once and sent twice
//	post         mails, and the tokens in them
//	notices      mails about events of an account
//	users        users with their first identity
//
//	method/      passwords, mails, passkeys, totp, recoverycodes, providers: how users prove their identity
//	flow/        registration, logins, stepup, recovery, enrollment, links, addresses, changes, deletion, firstadmin: the processes
//
//	admin        users, for admins
//	keys         API keys
//	exports      the export of a user's data, which package export makes
//
// Imports follow this order: a package imports only packages above it. The package comment of each has its states.
package account
