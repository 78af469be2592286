package format

import (
	"strings"
	"sync"
	"unicode"
)

// ECMA 262 lists the properties of Unicode that an expression may name, and has no other spelling than these.
const (
	binaryProperties = `ASCII ASCII_Hex_Digit AHex Alphabetic Alpha Any Assigned Bidi_Control Bidi_C Bidi_Mirrored Bidi_M Case_Ignorable CI Cased
		Changes_When_Casefolded CWCF Changes_When_Casemapped CWCM Changes_When_Lowercased CWL Changes_When_NFKC_Casefolded CWKCF
		Changes_When_Titlecased CWT Changes_When_Uppercased CWU Dash Default_Ignorable_Code_Point DI Deprecated Dep Diacritic Dia
		Emoji Emoji_Component EComp Emoji_Modifier EMod Emoji_Modifier_Base EBase Emoji_Presentation EPres Extended_Pictographic ExtPict
		Extender Ext Grapheme_Base Gr_Base Grapheme_Extend Gr_Ext Hex_Digit Hex IDS_Binary_Operator IDSB IDS_Trinary_Operator IDST
		ID_Continue IDC ID_Start IDS Ideographic Ideo Join_Control Join_C Logical_Order_Exception LOE Lowercase Lower Math
		Noncharacter_Code_Point NChar Pattern_Syntax Pat_Syn Pattern_White_Space Pat_WS Quotation_Mark QMark Radical Regional_Indicator RI
		Sentence_Terminal STerm Soft_Dotted SD Terminal_Punctuation Term Unified_Ideograph UIdeo Uppercase Upper Variation_Selector VS
		White_Space space XID_Continue XIDC XID_Start XIDS`

	// Scripts that package unicode does not know yet, and the short names of all, of which it knows none.
	moreScripts = `Beria_Erfe Garay Gurung_Khema Kirat_Rai Ol_Onal Sidetic Sunuwar Tai_Yo Todhri Tolong_Siki Tulu_Tigalari Unknown
		Adlm Aghb Ahom Arab Armi Armn Avst Bali Bamu Bass Batk Beng Berf Bhks Bopo Brah Brai Bugi Buhd Cakm Cans Cari Cham Cher Chrs Copt Cpmn Cprt
		Cyrl Deva Diak Dogr Dsrt Dupl Egyp Elba Elym Ethi Gara Geor Glag Gong Gonm Goth Gran Grek Gujr Gukh Guru Hang Hani Hano Hatr Hebr Hira Hluw
		Hmng Hmnp Hung Ital Java Kali Kana Kawi Khar Khmr Khoj Kits Knda Krai Kthi Lana Laoo Latn Lepc Limb Lina Linb Lisu Lyci Lydi Mahj Maka Mand
		Mani Marc Medf Mend Merc Mero Miao Mlym Modi Mong Mroo Mtei Mult Mymr Nagm Nand Narb Nbat Newa Nkoo Nshu Ogam Olck Onao Orkh Orya Osge Osma
		Ougr Palm Pauc Perm Phag Phli Phlp Phnx Plrd Prti Qaac Qaai Rjng Rohg Runr Samr Sarb Saur Sgnw Shaw Shrd Sidd Sidt Sind Sinh Sogd Sogo Sora
		Soyo Sund Sunu Sylo Syrc Tagb Takr Tale Talu Taml Tang Tavt Tayo Telu Tfng Tglg Thaa Thai Tibt Tirh Tnsa Todr Tols Toto Tutg Ugar Vaii Vith
		Wara Wcho Xpeo Xsux Yezi Yiii Zanb Zinh Zyyy Zzzz`
)

// namedProperties are the words of both lists.
var namedProperties = sync.OnceValue(func() (all struct{ binary, scripts map[string]bool }) {
	all.binary, all.scripts = words(binaryProperties), words(moreScripts)
	return all
})

func words(list string) map[string]bool {
	all := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		all[word] = true
	}
	return all
}

// isProperty reports whether \p{name} is one that ECMA 262 knows.
func isProperty(name string) bool {
	kind, value, pair := strings.Cut(name, "=")
	switch {
	case !pair:
		return isCategory(name) || namedProperties().binary[name]
	case kind == "General_Category", kind == "gc":
		return isCategory(value)
	case kind == "Script", kind == "sc", kind == "Script_Extensions", kind == "scx":
		return unicode.Scripts[value] != nil || namedProperties().scripts[value]
	default:
		return false
	}
}

func isCategory(name string) bool {
	_, alias := unicode.CategoryAliases[name]
	return alias || unicode.Categories[name] != nil
}
