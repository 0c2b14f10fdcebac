package audit

// What the tests of package audit_test use of those of this package.
var (
	AgedHome       = agedHome
	All            = all
	AppendNumbered = appendNumbered
	CloseLog       = closeLog
	CopyFile       = copyFile
	Damages        = damages
	ExecSQL        = execSQL
	History        = history
	Impatient      = impatient
	LongHistory    = longHistory
	MustPrune      = mustPrune
	OpenSession    = openSession
	ReplaceFiles   = replaceFiles
	Whys           = whys
)
