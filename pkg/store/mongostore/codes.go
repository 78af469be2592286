package mongostore

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"

	"belfry/pkg/errs"
)

// Error codes, by the kind that callers get. Those that are in no list, and in no range
// of unavailableStates, say that the server understood the command and refuses it: they
// are errs.Internal, because belfry sent a command that this server can't execute.
var (
	// unauthorizedCodes: its message contains the command with its objects.
	unauthorizedCodes = []int{13}

	authFailedCodes = []int{18, 11}

	throttledCodes = []int{
		433, 449, 450, 462, // SystemOverloadedError of MongoDB
		16500, // TooManyRequests, of services that speak the protocol
	}

	tooLargeCodes = []int{10334, 17419, 17420}

	// rolledBackCodes: the server changed nothing, because of a concurrent command.
	rolledBackCodes = []int{
		112, // WriteConflict; DocumentDB's gateway reports deadlocks so,
		117, // ConflictingOperationInProgress, and serialization failures so
		24,  // LockTimeout
	}

	// unavailableCodes: the server is starting, stopping, changing its role, out of
	// resources, or timed out. The lines are the categories of MongoDB's
	// error_codes.yml, as far as commands of belfry can cause them. The last ones
	// have no category.
	unavailableCodes = []int{
		6, 7, 89, 9001, 317, 384, 230, 231, // NetworkError, DNS
		24, 50, 237, 262, 279, 281, 282, 290, 355, 453, 11600, 11601, 11602, 46841, 91331, 10045600, // Interruption
		189, 10058, 10107, 13435, 13436, // NotPrimaryError
		91, 333, // ShutdownError
		202, 407, // ExceededTimeLimitError
		134, 358, 402, 406, 412, 50915, // RetriableError
		90, 310, 312, // CancellationError
		239, 246, 250, 272, // SnapshotError
		63, 150, 249, 343, 13388, // routing of a sharded cluster
		303, 372, 398, 145, 172, // closed connections
		43, 175, 314, // cursors
		46, 107, 112, 117, 208, // locks, conflicts
		94, 109, 149, 203, 216, 308, // starting, electing
		64, 100, 133, // no majority
		146, 261, 264, 365, 14031, // memory, connections, files, disk
		215, 276, 285, 338, 12586, 12587, // another process drops or builds
		371, // writes are blocked by an administrator
	}

	// failedCodes: the server failed for an unclassified reason. It may not have
	// refused the command, so another attempt may succeed. FerretDB and DocumentDB
	// use these codes for any error of their PostgreSQL server: that it is starting
	// or stopping, a deadlock, a lost connection.
	failedCodes = []int{
		0, // none
		1, // InternalError
		8, // UnknownError
	}
)

// unavailableLabels: the command did not reach the server, or may succeed when it is
// tried again. TransientTransactionError alone is on the error of a connection pool that
// another command's failure paused.
var unavailableLabels = []string{driver.NetworkError, driver.RetryableWriteError, driver.TransientTransactionError}

// SQLSTATEs of PostgreSQL, by their first characters. DocumentDB reports one as the code
// of the error of a single write, FerretDB 1 in the text of a message.
var (
	rolledBackStates = []string{
		"40001", // serialization_failure
		"40P01", // deadlock_detected
		"55P03", // lock_not_available
	}

	unavailableStates = []string{
		"08",             // connection exceptions
		"25006",          // a standby, which is read-only
		"40",             // rolled back
		"53",             // no memory, no disk, too many connections
		"55006", "55P03", // in use, locked
		"57", // starting, stopping, canceled
		"58", // input and output
	}
)

// stateInText finds the SQLSTATE in a message.
var stateInText = regexp.MustCompile(`\(SQLSTATE ([0-9A-Z]{5})\)`)

// deadlockTexts are the messages of PostgreSQL that FerretDB 2 returns without the
// SQLSTATE. A server with another language is not recognized: its error is one of
// failedCodes, and the command is not repeated here.
var deadlockTexts = []string{"deadlock detected", "could not serialize access"}

// unambiguous is the lowest code that is certainly a SQLSTATE: MongoDB's own are lower,
// and so are SQLSTATEs that end with a 0, of which two are known.
const unambiguous = 1 << 24

// lowStates are the SQLSTATEs below unambiguous that no code of MongoDB equals.
var lowStates = []string{"53100", "53200"} // disk full, out of memory

// sqlState returns the SQLSTATE that a code encodes, six bits for each character, and ""
// for any other code.
func sqlState(code int) string {
	var state [5]byte
	for i := range state {
		state[i] = byte(code>>(6*i)&0x3f) + '0'
		if c := state[i]; c > '9' && c < 'A' || c > 'Z' {
			return ""
		}
	}
	if text := string(state[:]); code>>30 == 0 && (code >= unambiguous || slices.Contains(lowStates, text)) {
		return text
	}
	return ""
}

// statesOf returns the SQLSTATEs of a server's error.
func statesOf(server mongo.ServerError) []string {
	var states []string
	for _, code := range server.ErrorCodes() {
		if state := sqlState(code); state != "" {
			states = append(states, state)
		}
	}
	if hasCode(server, failedCodes) {
		for _, found := range stateInText.FindAllStringSubmatch(server.Error(), -1) {
			states = append(states, found[1])
		}
	}
	return states
}

func hasCode(server mongo.ServerError, codes []int) bool {
	return slices.ContainsFunc(codes, server.HasErrorCode)
}

// isUnavailable reports whether another attempt at the command may succeed.
func isUnavailable(server mongo.ServerError) bool {
	return hasCode(server, unavailableCodes) || hasCode(server, failedCodes) ||
		slices.ContainsFunc(unavailableLabels, server.HasErrorLabel) ||
		slices.ContainsFunc(statesOf(server), isUnavailableState)
}

// isAuthFailedState recognizes invalid_authorization_specification and invalid_password.
func isAuthFailedState(state string) bool { return strings.HasPrefix(state, "28") }

func isUnavailableState(state string) bool {
	return slices.ContainsFunc(unavailableStates, func(prefix string) bool { return strings.HasPrefix(state, prefix) })
}

// rolledBack reports whether the server certainly changed nothing, because of a
// concurrent command: the same command may be sent again at once. It returns false for
// an error that already has a kind, see insert.
func rolledBack(err error) bool {
	var server mongo.ServerError
	if err == nil || errors.As(err, new(*errs.Error)) || !errors.As(err, &server) {
		return false
	}
	if slices.ContainsFunc(statesOf(server),
		func(state string) bool { return slices.Contains(rolledBackStates, state) }) {
		return true
	}
	return hasCode(server, rolledBackCodes) ||
		slices.ContainsFunc(deadlockTexts, func(text string) bool { return server.HasErrorCodeWithMessage(1, text) })
}
