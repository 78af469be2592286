package bus

import "strings"

// ImportedReply begins the reply subject of a request that comes from another account, by
// an import. The server sends the reply to the inbox that the request named there. It lets
// no client name such a subject.
const ImportedReply = "_R_."

// IsInbox reports whether a subject is an inbox. Requests name the subject of their
// reply, and the replying client may publish where the requester may not: to the event log,
// for instance.
func IsInbox(subject string) bool {
	// A request from another cluster: _GR_.<cluster>.<server>.<subject>.
	if parts := strings.SplitN(subject, ".", 4); len(parts) == 4 && parts[0] == "_GR_" {
		subject = parts[3]
	}
	return strings.HasPrefix(subject, "_INBOX") || strings.HasPrefix(subject, ImportedReply)
}
