# /// script
# requires-python = ">=3.11"
# dependencies = ["fpdf2==2.8.4"]
# ///
"""Writes the one PDF among the demo's documents from its text: ``uv run tools/incident_pdf.py``.

A tool of the authors, run after a change of the text; the package carries only what it wrote.
"""

from datetime import UTC, datetime
from pathlib import Path

from fpdf import FPDF

TARGET = Path(__file__).parents[1] / "src/headway/agents/knowledge/corpus/incident-label-outage.pdf"

TEXT = """
# Incident report: no labels on the morning of 12 April
Date: 12 April. Severity: 1. Lasted: 2 hours 35 minutes. Author: Wanda Osei, parcel intake team.

# Summary
On 12 April at 03:00 the signing key of the label service expired. Nobody had renewed it, because the reminder went to
an engineer who had left in March. Every depot stopped printing labels. Depots switched to paper mode at 03:50, and
labels were printed again from 05:35, five minutes before the first boat. 2,630 parcels were affected, 410 of them
missed the first boat, and none was lost.

# What happened
03:00. The key expires. The label service goes on accepting parcels but cannot sign their labels.

03:12. The harbour board shows zero labels a minute at all depots, and the on-call engineer is paged.

03:20. The engineer rolls back yesterday's release, as the runbook then said. It changes nothing.

03:50. The harbour master at Northhaven orders paper mode; the other depots follow within ten minutes.

04:40. The backup engineer sees that all failing labels have an empty signature and suspects the key.

05:05. The key is renewed in the vault. The copies do not read it, because they read it only at start.

05:35. All four copies have been restarted one by one. The first labels are printed.
--- new page ---
# Why it happened
The cause is an expired signing key. The key lasted 180 days and was renewed by hand. The only reminder was an entry in
one person's own calendar, and it left with that person.

It lasted so long for two reasons. The service had no lamp for its key, so the engineers looked at the release and the
database first. And a renewed key was not read until a restart, which cost 30 minutes.

# What went well
Paper mode worked at all depots, though two had less than one full box of labels. The harbour masters were told every
fifteen minutes. All parcels on paper were keyed in within the day.

# What was changed
1. The vault now renews the signing key by itself, 30 days before it ends. Done on 30 April.

2. The alarm for keys goes to the on-call engineer and never to a person by name. Done on 18 April.

3. The label service reads its key again every hour, without a restart. Done on 9 May.

4. The page of the service has a lamp for the signing key. Done on 9 May.

5. Reminders of a colleague who leaves are moved to the team by the security desk. Done on 25 April.

6. The pool of each copy was set to 40 connections, since the restarts had filled the database. Done on 15 April.
"""


def main() -> None:
    """Lay the text out and write the file; the same text always gives the same bytes."""
    pdf = FPDF(format="A4")
    pdf.set_title(TEXT.partition("# ")[2].partition("\n")[0])
    pdf.set_creation_date(datetime(2026, 1, 1, tzinfo=UTC))
    pdf.set_margin(25)
    for page in TEXT.split("--- new page ---"):
        pdf.add_page()
        for section in page.split("# ")[1:]:
            heading, _, body = section.partition("\n")
            pdf.set_font("Helvetica", "B", 13)
            pdf.multi_cell(0, 8, heading, new_x="LMARGIN", new_y="NEXT")
            pdf.set_font("Helvetica", "", 11)
            for paragraph in body.strip().split("\n\n"):
                pdf.multi_cell(0, 6, " ".join(paragraph.split()), new_x="LMARGIN", new_y="NEXT")
                pdf.ln(3)
    pdf.output(str(TARGET))


if __name__ == "__main__":
    main()
