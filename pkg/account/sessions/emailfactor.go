package sessions

// SessionFlow identifies what a second factor is proven for when a session is raised.
func SessionFlow(me *Session) string { return "session-" + me.ID }
