-- A store of version 1: `iterdump` of a file that the program of that version wrote.
BEGIN TRANSACTION;
CREATE TABLE calls (
	call_id VARCHAR NOT NULL,
	run_key VARCHAR NOT NULL,
	variant VARCHAR NOT NULL,
	source_key VARCHAR NOT NULL,
	repeat INTEGER NOT NULL,
	record TEXT NOT NULL,
	requests INTEGER NOT NULL,
	prompt_tokens INTEGER,
	completion_tokens INTEGER,
	cost FLOAT,
	PRIMARY KEY (call_id),
	FOREIGN KEY(run_key) REFERENCES runs (run_key),
	FOREIGN KEY(source_key) REFERENCES sources (source_key)
);
INSERT INTO "calls" VALUES('c92fbadb3213455da0ce4b22f091e870','60063d05c43d932166207c1a7b12d76d5b0cb5673a0e07b3216eb729cedea298','original','23f4682c9367f04428fd7f381940f4c49feaef14bedff477d1344b4213277b97',0,'{"shown": ["quality-0", "quality-1"], "replies": [], "raw": null, "rung": null, "extra": [], "attempts": 0, "repaired": false, "cache_hit": false, "usage": {"requests": 1, "prompt_tokens": 100, "completion_tokens": 10, "cost": null}, "latency": null}',1,100,10,NULL);
INSERT INTO "calls" VALUES('cc18d64e3a914a8395fc1cf961b13cee','7870a6ee63ebdfe0d83bacc48db61466a67ab3cb8fcd9d5abbeca919dc8602b3','original','23f4682c9367f04428fd7f381940f4c49feaef14bedff477d1344b4213277b97',0,'{"shown": ["quality-0", "quality-1"], "replies": [], "raw": null, "rung": null, "extra": [], "attempts": 0, "repaired": false, "cache_hit": false, "usage": {"requests": 1, "prompt_tokens": 100, "completion_tokens": 10, "cost": null}, "latency": null}',1,100,10,NULL);
INSERT INTO "calls" VALUES('60d220fa971f418aa4aec9dddbb43ed3','68130f08eb140a2e4f6fbf30b5d15a38bbce5d554272531f34c06601b3a59983','original','23f4682c9367f04428fd7f381940f4c49feaef14bedff477d1344b4213277b97',0,'{"shown": [], "replies": [], "raw": null, "rung": null, "extra": [], "attempts": 0, "repaired": false, "cache_hit": false, "usage": {"requests": 1, "prompt_tokens": null, "completion_tokens": null, "cost": null}, "latency": null}',1,NULL,NULL,NULL);
CREATE TABLE cells (
	run_key VARCHAR NOT NULL,
	variant VARCHAR NOT NULL,
	criterion_key VARCHAR NOT NULL,
	source_key VARCHAR NOT NULL,
	repeat INTEGER NOT NULL,
	status VARCHAR NOT NULL,
	label VARCHAR,
	value FLOAT,
	detail TEXT NOT NULL,
	tries INTEGER NOT NULL,
	attempt INTEGER NOT NULL,
	call_id VARCHAR NOT NULL,
	PRIMARY KEY (source_key, run_key, variant, criterion_key, repeat),
	FOREIGN KEY(run_key) REFERENCES runs (run_key),
	FOREIGN KEY(criterion_key) REFERENCES criteria (criterion_key),
	FOREIGN KEY(source_key) REFERENCES sources (source_key),
	FOREIGN KEY(call_id) REFERENCES calls (call_id)
);
INSERT INTO "cells" VALUES('60063d05c43d932166207c1a7b12d76d5b0cb5673a0e07b3216eb729cedea298','original','cf60bbb35c1a45c43ebd6ea8c2af7836c7f71020247328ddfd92849755d3079d','23f4682c9367f04428fd7f381940f4c49feaef14bedff477d1344b4213277b97',0,'scored','fair',0.25,'{"explanation": "run-0 says so"}',1,0,'c92fbadb3213455da0ce4b22f091e870');
INSERT INTO "cells" VALUES('60063d05c43d932166207c1a7b12d76d5b0cb5673a0e07b3216eb729cedea298','original','bf66283085c2dd358f3d42381b9c1fdcae7f10313c8c95e66169b867d9159a02','23f4682c9367f04428fd7f381940f4c49feaef14bedff477d1344b4213277b97',0,'scored','fair',0.25,'{"explanation": "run-0 says so"}',1,0,'c92fbadb3213455da0ce4b22f091e870');
INSERT INTO "cells" VALUES('7870a6ee63ebdfe0d83bacc48db61466a67ab3cb8fcd9d5abbeca919dc8602b3','original','cf60bbb35c1a45c43ebd6ea8c2af7836c7f71020247328ddfd92849755d3079d','23f4682c9367f04428fd7f381940f4c49feaef14bedff477d1344b4213277b97',0,'scored','very good',0.75,'{"explanation": "run-1 says so"}',1,0,'cc18d64e3a914a8395fc1cf961b13cee');
INSERT INTO "cells" VALUES('7870a6ee63ebdfe0d83bacc48db61466a67ab3cb8fcd9d5abbeca919dc8602b3','original','bf66283085c2dd358f3d42381b9c1fdcae7f10313c8c95e66169b867d9159a02','23f4682c9367f04428fd7f381940f4c49feaef14bedff477d1344b4213277b97',0,'scored','poor',0.0,'{"explanation": "run-1 says so"}',1,0,'cc18d64e3a914a8395fc1cf961b13cee');
INSERT INTO "cells" VALUES('68130f08eb140a2e4f6fbf30b5d15a38bbce5d554272531f34c06601b3a59983','original','cf60bbb35c1a45c43ebd6ea8c2af7836c7f71020247328ddfd92849755d3079d','23f4682c9367f04428fd7f381940f4c49feaef14bedff477d1344b4213277b97',0,'error:timeout',NULL,NULL,'{"message": "no"}',1,0,'60d220fa971f418aa4aec9dddbb43ed3');
INSERT INTO "cells" VALUES('68130f08eb140a2e4f6fbf30b5d15a38bbce5d554272531f34c06601b3a59983','original','bf66283085c2dd358f3d42381b9c1fdcae7f10313c8c95e66169b867d9159a02','23f4682c9367f04428fd7f381940f4c49feaef14bedff477d1344b4213277b97',0,'error:timeout',NULL,NULL,'{"message": "no"}',1,0,'60d220fa971f418aa4aec9dddbb43ed3');
CREATE TABLE criteria (
	criterion_key VARCHAR NOT NULL,
	criterion_id VARCHAR NOT NULL,
	record TEXT NOT NULL,
	used FLOAT NOT NULL,
	PRIMARY KEY (criterion_key)
);
INSERT INTO "criteria" VALUES('cf60bbb35c1a45c43ebd6ea8c2af7836c7f71020247328ddfd92849755d3079d','quality-0','{"id": "quality-0", "name": "quality 0", "description": "", "accepted_values": ["poor", "fair", "good", "very good", "perfect"], "scale": "ordinal", "order": "worst_to_best", "allow_na": false, "hint": null, "numeric_range": null, "sub_criteria": [], "aggregation": "mean", "expect": {}, "provenance": {"origin": "user", "seeds": [], "model": null, "prompt_sha256": null, "concept": null, "aliases": []}, "verification": null}',1700000000.0);
INSERT INTO "criteria" VALUES('bf66283085c2dd358f3d42381b9c1fdcae7f10313c8c95e66169b867d9159a02','quality-1','{"id": "quality-1", "name": "quality 1", "description": "", "accepted_values": ["poor", "fair", "good", "very good", "perfect"], "scale": "ordinal", "order": "worst_to_best", "allow_na": false, "hint": null, "numeric_range": null, "sub_criteria": [], "aggregation": "mean", "expect": {}, "provenance": {"origin": "user", "seeds": [], "model": null, "prompt_sha256": null, "concept": null, "aliases": []}, "verification": null}',1700000000.0);
CREATE TABLE meta (
	"key" VARCHAR NOT NULL,
	value BLOB NOT NULL,
	PRIMARY KEY ("key")
);
INSERT INTO "meta" VALUES('version',X'31');
INSERT INTO "meta" VALUES('secret',X'D4C91AD39D90EAB57E375DA6D075E2A1E5594B636F0FCA3CAA485F33933FDFEE');
CREATE TABLE replies (
	"key" VARCHAR NOT NULL,
	reply TEXT NOT NULL,
	PRIMARY KEY ("key")
);
INSERT INTO "replies" VALUES('k','{"text": "paid"}');
CREATE TABLE runs (
	run_key VARCHAR NOT NULL,
	run_id VARCHAR NOT NULL,
	task VARCHAR NOT NULL,
	system VARCHAR NOT NULL,
	case_key VARCHAR NOT NULL,
	success INTEGER,
	problem TEXT NOT NULL,
	trajectory TEXT NOT NULL,
	reference_shown INTEGER NOT NULL,
	used FLOAT NOT NULL,
	PRIMARY KEY (run_key)
);
INSERT INTO "runs" VALUES('60063d05c43d932166207c1a7b12d76d5b0cb5673a0e07b3216eb729cedea298','run-0','sums','style-0','a2dbdcc17a5fcb4197680531ba1213a341ff4ecc2eacddde6ba1e157868676dd',1,'problem 0','because 2 + 2 = 4 (0)',0,1700000000.0);
INSERT INTO "runs" VALUES('7870a6ee63ebdfe0d83bacc48db61466a67ab3cb8fcd9d5abbeca919dc8602b3','run-1','sums','style-1','a2dbdcc17a5fcb4197680531ba1213a341ff4ecc2eacddde6ba1e157868676dd',0,'problem 0','because 2 + 2 = 4 (1)',0,1700000000.0);
INSERT INTO "runs" VALUES('68130f08eb140a2e4f6fbf30b5d15a38bbce5d554272531f34c06601b3a59983','run-2','sums','style-2','a2dbdcc17a5fcb4197680531ba1213a341ff4ecc2eacddde6ba1e157868676dd',1,'problem 0','because 2 + 2 = 4 (2)',0,1700000000.0);
CREATE TABLE sources (
	source_key VARCHAR NOT NULL,
	evaluator VARCHAR NOT NULL,
	model VARCHAR NOT NULL,
	record TEXT NOT NULL,
	used FLOAT NOT NULL,
	PRIMARY KEY (source_key)
);
INSERT INTO "sources" VALUES('23f4682c9367f04428fd7f381940f4c49feaef14bedff477d1344b4213277b97','test','scripted','{"evaluator": "test", "version": 1, "model": "scripted", "prompt_sha256": "v1", "parameters": {}, "seed": 0}',1700000000.0);
CREATE INDEX calls_by_source ON calls (source_key);
COMMIT;
