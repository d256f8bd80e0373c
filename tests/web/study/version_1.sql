BEGIN TRANSACTION;
CREATE TABLE studies (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	design JSON NOT NULL, 
	created_at TEXT NOT NULL, 
	is_closed BOOLEAN NOT NULL
);
INSERT INTO "studies" VALUES(1,'{"title": "A study of the version before", "consent": "You will be shown pictures or texts, each with several captions that computer programs wrote. Please score each caption, and choose the best one.\n\nYour answers are kept without your name and used to compare the programs. You may stop at any time, and come back through the same link.", "scales": ["correctness", "detail"], "items_per_rater": null, "is_repeated": true, "seed": 0}','2026-11-18T08:52:52+00:00',0);
CREATE TABLE study_answers (
	rater INTEGER NOT NULL, 
	item INTEGER NOT NULL, 
	record JSON NOT NULL, 
	is_complete BOOLEAN NOT NULL, 
	answered_at TEXT NOT NULL, 
	PRIMARY KEY (rater, item), 
	FOREIGN KEY(rater) REFERENCES study_raters (id) ON DELETE CASCADE
);
INSERT INTO "study_answers" VALUES(1,0,'{"scores": {"correctness": [5, 4, 3], "detail": [2, 3, 3]}, "best": {"correctness": 1, "detail": 1}}',1,'2026-11-18T08:52:52+00:00');
CREATE TABLE study_items (
	study INTEGER NOT NULL, 
	place INTEGER NOT NULL, 
	record JSON NOT NULL, 
	PRIMARY KEY (study, place), 
	FOREIGN KEY(study) REFERENCES studies (id) ON DELETE CASCADE
);
INSERT INTO "study_items" VALUES(1,0,'{"id": "item-0", "text": "text 0", "captions": {"Zebra-arithmetic": "caption 0 one", "Yak-geometric": "caption 0 two", "Xerus-barycenter": "caption 0 three"}}');
INSERT INTO "study_items" VALUES(1,1,'{"id": "check-0", "text": "right", "captions": {"Walrus-right": "right 0", "Vole-wrong": "wrong 0"}, "check": {"best": "Walrus-right", "correctness": {"Vole-wrong": [1, 2]}}}');
CREATE TABLE study_raters (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	study INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	secret TEXT NOT NULL, 
	shown JSON NOT NULL, 
	consented_at TEXT, 
	is_closed BOOLEAN NOT NULL, 
	UNIQUE (study, number), 
	FOREIGN KEY(study) REFERENCES studies (id) ON DELETE CASCADE, 
	UNIQUE (secret)
);
INSERT INTO "study_raters" VALUES(1,1,1,'BK9paeh52qUTiadH-T4a84LpKnFNuAhX','[[0, [1, 0, 2]], [1, [0, 1]]]','2026-11-18T08:52:52+00:00',0);
INSERT INTO "study_raters" VALUES(2,1,2,'UBArXVRukZm6LKhygBf1vNUKvmlzmArR','[[0, [2, 0, 1]], [1, [0, 1]]]',NULL,0);
CREATE TABLE study_schema (
	version INTEGER NOT NULL, 
	PRIMARY KEY (version)
);
INSERT INTO "study_schema" VALUES(1);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('studies',1);
INSERT INTO "sqlite_sequence" VALUES('study_raters',2);
COMMIT;
