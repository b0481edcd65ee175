# SPDX-License-Identifier: LGPL-2.1-or-later
# compute-agent-messages(7) from the message catalogue.

function escape(s) {
	gsub(/\\/, "\\e", s)
	gsub(/-/, "\\-", s)
	gsub(/@/, "", s) # of fields
	sub(/^[.']/, "\\\\\\&&", s)
	return s
}

BEGIN { while ((getline line < head) > 0) print line }
/^-- / { id = $2; next }
/^Subject: / { print ".SS \"" escape(substr($0, 10)) "\""; print "MESSAGE_ID=" id; next }
/^Defined-By/ || /^#/ { next }
/^$/ { if (id != "") blank = 1; next }
id != "" {
	if (blank)
		print ".PP"
	blank = 0
	print escape($0)
}
END { while ((getline line < tail) > 0) print line }
