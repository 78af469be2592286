// Package manual is the documentation of belfry, as a site: docs/*.md, rendered to HTML fragments and indexed by
// `make manual`, and embedded. It serves nothing itself: package console does, below /console/docs/.
//
// The folder site has compressed files that test/manual/site writes:
//
//   - contents.gz: the parts, pages and headings, as JSON (Part).
//   - words.gz: the index of words, see index.go.
//   - one file for each page, with its HTML. A slash of the page's URL is a dot in the file's name.
package manual
