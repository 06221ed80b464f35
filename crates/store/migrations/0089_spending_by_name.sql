-- For whoever asks what one conversation, person or model spent, over any number of days.
CREATE INDEX spending_of ON spending (scope, name, day);
