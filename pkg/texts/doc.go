// Package texts has the texts of the pages for people and of their mails, in several languages.
//
// Each text has an id, which is its path in a file of a language: login.title. English and German are embedded. A
// folder adds files of other languages, and replaces texts of these two. A language that lacks a text shows that of
// its parent, pt for pt-BR, and then the English one.
//
//	plain    Welcome, {user}.                       placeholders in braces, which English has as well
//	plural   {one: "{count} is left", other: ...}   by the number {count}, in the forms of the language (CLDR)
//	mail     Confirm your address: {{.Link}}        a template of package mail; ids that begin with mails.
package texts
