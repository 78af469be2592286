package post

// Notice is a kind of mail by which users learn what has happened to their account. It has no token.
type Notice string

const (
	NoticeDevice Notice = "device" // a login from a device that was not seen before
)
