package mail_test

import (
	"strings"
	"testing"

	"belfry/pkg/errs"
	belfry "belfry/pkg/mail"
	"belfry/test/mailbox"
)

// What mail servers reply about who sends is retried, and about all mails; what they reply about a recipient or a mail
// is neither. The texts are those of Postfix, Gmail, Amazon SES, Mailgun, SendGrid, Mailtrap, Resend, Zoho, iCloud,
// Exchange and Exim.
func TestRepliesAboutTheSenderAreRetried(t *testing.T) {
	const sender, recipient = true, false
	for _, c := range []struct {
		stage string
		code  int
		text  string
		about bool
		words string // of the server, in the error
	}{
		{"MAIL", 553, "5.7.1 <bells@example.com>: Sender address rejected: not owned by user belfry", sender,
			"not owned by user belfry"},
		{"MAIL", 550, "5.1.8 Sender domain does not exist", sender, "Sender domain"},
		{"MAIL", 550, "5.7.0 Mail quota of this account", sender, "quota"},
		{"MAIL", 451, "4.3.0 no room", sender, "no room"},
		{"MAIL", 501, "Syntax error in parameters", sender, "Syntax error"},
		{"MAIL", 550, "5.7.60 SMTP; Client does not have permissions to send as this sender", sender,
			"permissions to send as"},
		{"RCPT", 504, "5.5.2 <localhost>: Helo command rejected: need fully-qualified hostname", sender,
			"need fully-qualified hostname"},
		{"RCPT", 450, "4.7.1 <localhost>: Helo command rejected: Host not found", sender, "Host not found"},
		{"RCPT", 554, "5.7.1 <ada@example.org>: Relay access denied", sender, "Relay access denied"},
		{"RCPT", 550, "5.7.64 TenantAttribution; Relay Access Denied", sender, "Relay Access Denied"},
		{"RCPT", 550, "relay not permitted", sender, "relay not permitted"},
		{"RCPT", 554, "5.7.1 Service unavailable; Client host [192.0.2.1] blocked using zen.spamhaus.org", sender,
			"blocked using"},
		{"RCPT", 550, "5.7.25 The IP address sending this message does not have a PTR record setup", sender,
			"PTR record"},
		{"RCPT", 550, "5.4.5 Daily user sending limit exceeded. Try again later", sender,
			"Daily user sending limit exceeded"},
		{"RCPT", 503, "5.5.1 Error: need MAIL command", sender, "need MAIL"},
		{"DATA", 550, "5.4.5 Daily SMTP relay limit exceeded for user", sender, "Daily SMTP relay limit"},
		{"DATA", 454, "Throttling failure: Maximum sending rate exceeded.", sender, "Maximum sending rate"},
		{"DATA", 454, "Throttling failure: Daily message quota exceeded.", sender, "Daily message quota"},
		{"DATA", 554, "Message rejected: Email address is not verified. The following identities failed the check in " +
			"region US-EAST-1: ada@example.org", sender, "identities failed the check"},
		{"DATA", 554, "Sandbox subdomains are for test purposes only. Please add your own domain or add the address " +
			"to authorized recipients.", sender, "Sandbox subdomains"},
		{"DATA", 550, "The from address does not match a verified Sender Identity.", sender,
			"verified Sender Identity"},
		{"DATA", 554, "5.2.252 SendAsDenied; belfry@example.com not allowed to send as bells@example.com", sender,
			"SendAsDenied"},
		{"DATA", 550, "5.7.26 Unauthenticated email from example.com is not accepted due to domain's DMARC policy.",
			sender, "DMARC"},
		{"DATA", 550, "5.7.1 This message does not pass SPF", sender, "SPF"},
		{"DATA", 550, "5.4.5 Daily limit, see https://support.example.com/limits", sender, ""},

		{"DATA", 554, "Message rejected: Sending suspended for this account. For more information, please check the " +
			"inbox of the email address associated with your AWS account.", sender, "Sending suspended"},
		{"DATA", 554, "Access denied: User `arn:aws:iam::123456789012:user/belfry' is not authorized to perform " +
			"`ses:SendRawEmail' on resource", sender, "not authorized to perform"},
		{"DATA", 550, "5.7.0 From address is not one of your addresses", sender, "From address"},
		{"DATA", 550, "5.7.0 Requested action not taken: too many emails per second", sender, "too many emails"},
		{"DATA", 554, "5.7.1 Demo domains can only be used to send emails to account owners", sender, "Demo domains"},
		{"RCPT", 550, "5.4.6 Unusual sending activity detected. Please try after sometime.", sender,
			"Unusual sending activity"},
		{"RCPT", 450, "You can only send testing emails to your own email address. To send emails to other " +
			"recipients, verify a domain.", sender, "verify a domain"},
		{"RCPT", 550,
			"5.7.1 <ada@example.org>: Recipient address rejected: SPF-Result=softfail; sender is not authorized",
			sender, "SPF-Result"},

		{"RCPT", 550, "5.1.0 192.0.2.1 sender rejected. Please see our policies", sender, "sender rejected"},
		{"RCPT", 550, "5.7.1 Your IP address is blacklisted", sender, "IP address"},
		{"RCPT", 554, "5.7.1 <ada@example.org>: Recipient address rejected: Access denied", recipient, "Access denied"},
		{"RCPT", 550, "5.1.0 Address rejected", recipient, "Address rejected"},
		{"RCPT", 554, "5.7.1 User unknown", recipient, "User unknown"},
		{"RCPT", 550, "5.4.6 Routing loop detected", recipient, "Routing loop"},
		{"DATA", 554, "Message rejected: Address blacklisted.", recipient, "Address blacklisted"},
		{"DATA", 550, "5.7.0 The recipient is on our suppression list", recipient, "suppression list"},
		{"RCPT", 550, "5.1.1 <ada@example.org>: Recipient address rejected: User unknown in virtual mailbox table",
			recipient, "User unknown"},
		{"RCPT", 550, "5.1.1 The sender was not informed: no such user", recipient, "no such user"},
		{"RCPT", 550, "No such user here", recipient, "No such user"},
		{"RCPT", 556, "5.1.10 Domain does not accept mail (nullMX)", recipient, "nullMX"},
		{"RCPT", 553, "5.1.3 Bad recipient address syntax", recipient, "syntax"},
		{"RCPT", 501, "5.1.3 Bad recipient address syntax", recipient, "syntax"},
		{"RCPT", 552, "5.2.2 The recipient's mailbox is over quota; it gets too many messages", recipient,
			"over quota"},
		{"RCPT", 552, "Mailbox quota exceeded", recipient, "quota"},
		{"RCPT", 550, "5.4.1 Recipient address rejected: Access denied", recipient, "Access denied"},
		{"DATA", 554, "5.7.1 Message rejected as spam by content filter", recipient, "spam"},
		{"DATA", 552, "5.7.0 This message was blocked because its content presents a potential security issue",
			recipient, "security issue"},
		{"DATA", 552, "5.3.4 Message size exceeds fixed limit", recipient, "size"},
		{"DATA", 552, "Message size exceeds the limit", recipient, "size"},
		{"DATA", 550, "5.6.0 Headers too long", recipient, "Headers"},
		{"DATA", 554, "Transaction failed", recipient, "Transaction failed"},
	} {
		t.Run(c.stage+" "+c.text, func(t *testing.T) {
			s := mailbox.Start(t)
			s.Refuse(func(stage, _ string) error {
				if stage == c.stage {
					return mailbox.Reply(c.code, c.text)
				}
				return nil
			})
			err := belfry.NewSMTP(options(s, "none")).Send(t.Context(), letter())
			kind := errs.Invalid
			if c.about == sender || c.code/100 == 4 {
				kind = errs.Unavailable
			}
			wantError(t, err, kind, c.words)
			says, about := belfry.AboutServer(err)
			if about != c.about {
				t.Errorf("about the server: %v, %q", about, says)
			}
			if about && (!strings.Contains(says, "was refused: ") || strings.Contains(says, "@") ||
				strings.HasSuffix(c.text, says)) {
				t.Errorf("it says %q", says)
			}
			if c.words == "" && strings.Contains(err.Error(), "://") {
				t.Errorf("%v has a link", err)
			}
		})
	}
}

// Greylisting is about one recipient, and passes.
func TestTransientRepliesAboutARecipientAreNotAboutTheServer(t *testing.T) {
	for _, text := range []string{"4.2.0 <ada@example.org>: Recipient address rejected: Greylisted",
		"4.7.1 Greylisting in action, please come back later", "4.2.2 mailbox full",
		"4.1.1 unverified address: try again"} {
		s := mailbox.Start(t)
		s.Refuse(func(stage, _ string) error {
			if stage == "RCPT" {
				return mailbox.Reply(450, text)
			}
			return nil
		})
		err := belfry.NewSMTP(options(s, "none")).Send(t.Context(), letter())
		wantError(t, err, errs.Unavailable)
		if says, about := belfry.AboutServer(err); about {
			t.Errorf("%s: %s", text, says)
		}
	}
}

// Words of a server are quoted unless they have a part of a secret, in whatever form.
func TestRepliesWithSecretsAreNotQuoted(t *testing.T) {
	m := letter()
	m.Link, m.Token = "https://example.com/auth?login=ada&token="+secret, "abc123-XYZ987"
	for text, quoted := range map[string]bool{
		"no": true, "rejected by rule 17": true, "your token": false, "abc123-XYZ987": false, "ABC123-xyz987": false,
		"saw 3-XY Z98 7": false, "abc12": true,
		"t0k-5ec": false, "see http://x": false, "see www.example.com": false, "example.com/auth?login=ada": false,
		"login%3Dada": false, "pass w0rd": false, "asSw0R": false,
	} {
		s := mailbox.Start(t, mailbox.StartTLS(), mailbox.Login(user, password))
		s.Refuse(func(stage, _ string) error {
			if stage == "DATA" {
				return mailbox.Reply(554, "5.6.0 because "+text)
			}
			return nil
		})
		opts := options(s, "starttls")
		opts.User, opts.Password = user, password
		err := belfry.NewSMTP(opts).Send(t.Context(), m)
		wantError(t, err, errs.Invalid, "554 5.6.0")
		if strings.Contains(err.Error(), "because") != quoted {
			t.Errorf("%q: %v", text, err)
		}
	}
	// A short code is a secret as a whole.
	m.Link, m.Token = "https://example.com", "314159"
	s := mailbox.Start(t)
	s.Refuse(func(stage, _ string) error {
		if stage == "DATA" {
			return mailbox.Reply(554, "spam: code 31 41 59")
		}
		return nil
	})
	if err := belfry.NewSMTP(options(s, "none")).Send(t.Context(), m); strings.Contains(err.Error(), "spam") {
		t.Error(err)
	}
}

// The words with which a login is refused say what to do.
func TestTheWordsOfARefusedLoginAreQuoted(t *testing.T) {
	for text, want := range map[string]string{
		"5.7.9 Application-specific password required. Learn more at\n5.7.9 " +
			"https://support.example.com/x": "534 5.7.9: check user and password of the mail server " +
			"(Application-specific password required. Learn more at https://support.example.com/x)",
		"5.7.9 you said " + password: "534 5.7.9: check user and password of the mail server",
	} {
		s := mailbox.Start(t, mailbox.StartTLS(), mailbox.Login(user, password))
		s.Refuse(func(stage, _ string) error {
			if stage == "AUTH" {
				return mailbox.Reply(534, text)
			}
			return nil
		})
		opts := options(s, "starttls")
		opts.User, opts.Password = user, password
		err := belfry.NewSMTP(opts).Send(t.Context(), letter())
		wantError(t, err, errs.Unavailable, want)
		if says, about := belfry.AboutServer(err); !about || says != "logging in was refused: 534 5.7.9" {
			t.Errorf("%v: %q", about, says)
		}
	}
}
