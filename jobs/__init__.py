"""Jobs, schedules and sensors: what runs together, and when. No data is touched here."""
