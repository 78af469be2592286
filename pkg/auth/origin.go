package auth

// Origin is where a request came from.
type Origin struct {
	Address   string `json:"address,omitempty"` // of the network
	UserAgent string `json:"userAgent,omitempty"`
}

func (s *Service) originOf(address, userAgent string) Origin {
	return Origin{Address: address, UserAgent: userAgent}
}
