-- A store of version 3: `iterdump` of a file that the program of that version wrote.
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
INSERT INTO "calls" VALUES('57f00864dfa649d3bf6499d88874fbc8','60063d05c43d932166207c1a7b12d76d5b0cb5673a0e07b3216eb729cedea298','original','23f4682c9367f04428fd7f381940f4c49feaef14bedff477d1344b4213277b97',0,'{"shown": ["quality-0", "quality-1"], "replies": [], "raw": null, "rung": null, "extra": [], "attempts": 0, "repaired": false, "cache_hit": false, "usage": {"requests": 1, "prompt_tokens": 100, "completion_tokens": 10, "cost": null}, "latency": null, "model": null}',1,100,10,NULL);
INSERT INTO "calls" VALUES('391bff8c7e594c79a70a7ca00e7a016b','7870a6ee63ebdfe0d83bacc48db61466a67ab3cb8fcd9d5abbeca919dc8602b3','original','23f4682c9367f04428fd7f381940f4c49feaef14bedff477d1344b4213277b97',0,'{"shown": ["quality-0", "quality-1"], "replies": [], "raw": null, "rung": null, "extra": [], "attempts": 0, "repaired": false, "cache_hit": false, "usage": {"requests": 1, "prompt_tokens": 100, "completion_tokens": 10, "cost": null}, "latency": null, "model": null}',1,100,10,NULL);
INSERT INTO "calls" VALUES('c39aebc584814790a7b043bf67607736','68130f08eb140a2e4f6fbf30b5d15a38bbce5d554272531f34c06601b3a59983','original','23f4682c9367f04428fd7f381940f4c49feaef14bedff477d1344b4213277b97',0,'{"shown": [], "replies": [], "raw": null, "rung": null, "extra": [], "attempts": 0, "repaired": false, "cache_hit": false, "usage": {"requests": 1, "prompt_tokens": null, "completion_tokens": null, "cost": null}, "latency": null, "model": null}',1,NULL,NULL,NULL);
INSERT INTO "calls" VALUES('19429e8c7bec4b5c8b5a973514f051cc','60063d05c43d932166207c1a7b12d76d5b0cb5673a0e07b3216eb729cedea298','original','9bcbe4c7fb47f302ded5279a94154dc5429644f7171c4f9a0b1045ba79ac19cf',0,'{"shown": ["tidiness"], "replies": [], "raw": null, "rung": null, "extra": [], "attempts": 0, "repaired": false, "cache_hit": false, "usage": {"requests": 1, "prompt_tokens": 100, "completion_tokens": 10, "cost": null}, "latency": null, "model": null}',1,100,10,NULL);
INSERT INTO "calls" VALUES('db295a2f06a0438f8ceb69e925c59fca','7870a6ee63ebdfe0d83bacc48db61466a67ab3cb8fcd9d5abbeca919dc8602b3','original','9bcbe4c7fb47f302ded5279a94154dc5429644f7171c4f9a0b1045ba79ac19cf',0,'{"shown": ["tidiness"], "replies": [], "raw": null, "rung": null, "extra": [], "attempts": 0, "repaired": false, "cache_hit": false, "usage": {"requests": 1, "prompt_tokens": 100, "completion_tokens": 10, "cost": null}, "latency": null, "model": null}',1,100,10,NULL);
INSERT INTO "calls" VALUES('cb55afad37284bcc9eae00ee98338f14','68130f08eb140a2e4f6fbf30b5d15a38bbce5d554272531f34c06601b3a59983','original','9bcbe4c7fb47f302ded5279a94154dc5429644f7171c4f9a0b1045ba79ac19cf',0,'{"shown": ["tidiness"], "replies": [], "raw": null, "rung": null, "extra": [], "attempts": 0, "repaired": false, "cache_hit": false, "usage": {"requests": 1, "prompt_tokens": 100, "completion_tokens": 10, "cost": null}, "latency": null, "model": null}',1,100,10,NULL);
INSERT INTO "calls" VALUES('955be6430fb142619e5d6078b70ef504','60063d05c43d932166207c1a7b12d76d5b0cb5673a0e07b3216eb729cedea298','original','9bcbe4c7fb47f302ded5279a94154dc5429644f7171c4f9a0b1045ba79ac19cf',0,'{"shown": ["tidiness"], "replies": [], "raw": null, "rung": null, "extra": [], "attempts": 0, "repaired": false, "cache_hit": false, "usage": {"requests": 1, "prompt_tokens": 100, "completion_tokens": 10, "cost": null}, "latency": null, "model": null}',1,100,10,NULL);
INSERT INTO "calls" VALUES('fc0d52cc06b44395a055f028c9e7493d','7870a6ee63ebdfe0d83bacc48db61466a67ab3cb8fcd9d5abbeca919dc8602b3','original','9bcbe4c7fb47f302ded5279a94154dc5429644f7171c4f9a0b1045ba79ac19cf',0,'{"shown": ["tidiness"], "replies": [], "raw": null, "rung": null, "extra": [], "attempts": 0, "repaired": false, "cache_hit": false, "usage": {"requests": 1, "prompt_tokens": 100, "completion_tokens": 10, "cost": null}, "latency": null, "model": null}',1,100,10,NULL);
CREATE TABLE cases (
        evaluator VARCHAR NOT NULL,
        case_key VARCHAR NOT NULL,
        case_id VARCHAR NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (evaluator, case_key)
    );
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
INSERT INTO "cells" VALUES('60063d05c43d932166207c1a7b12d76d5b0cb5673a0e07b3216eb729cedea298','original','cf60bbb35c1a45c43ebd6ea8c2af7836c7f71020247328ddfd92849755d3079d','23f4682c9367f04428fd7f381940f4c49feaef14bedff477d1344b4213277b97',0,'scored','fair',0.25,'{"explanation": "run-0 says so"}',1,0,'57f00864dfa649d3bf6499d88874fbc8');
INSERT INTO "cells" VALUES('60063d05c43d932166207c1a7b12d76d5b0cb5673a0e07b3216eb729cedea298','original','bf66283085c2dd358f3d42381b9c1fdcae7f10313c8c95e66169b867d9159a02','23f4682c9367f04428fd7f381940f4c49feaef14bedff477d1344b4213277b97',0,'scored','fair',0.25,'{"explanation": "run-0 says so"}',1,0,'57f00864dfa649d3bf6499d88874fbc8');
INSERT INTO "cells" VALUES('7870a6ee63ebdfe0d83bacc48db61466a67ab3cb8fcd9d5abbeca919dc8602b3','original','cf60bbb35c1a45c43ebd6ea8c2af7836c7f71020247328ddfd92849755d3079d','23f4682c9367f04428fd7f381940f4c49feaef14bedff477d1344b4213277b97',0,'scored','very good',0.75,'{"explanation": "run-1 says so"}',1,0,'391bff8c7e594c79a70a7ca00e7a016b');
INSERT INTO "cells" VALUES('7870a6ee63ebdfe0d83bacc48db61466a67ab3cb8fcd9d5abbeca919dc8602b3','original','bf66283085c2dd358f3d42381b9c1fdcae7f10313c8c95e66169b867d9159a02','23f4682c9367f04428fd7f381940f4c49feaef14bedff477d1344b4213277b97',0,'scored','poor',0.0,'{"explanation": "run-1 says so"}',1,0,'391bff8c7e594c79a70a7ca00e7a016b');
INSERT INTO "cells" VALUES('68130f08eb140a2e4f6fbf30b5d15a38bbce5d554272531f34c06601b3a59983','original','cf60bbb35c1a45c43ebd6ea8c2af7836c7f71020247328ddfd92849755d3079d','23f4682c9367f04428fd7f381940f4c49feaef14bedff477d1344b4213277b97',0,'error:timeout',NULL,NULL,'{"message": "no"}',1,0,'c39aebc584814790a7b043bf67607736');
INSERT INTO "cells" VALUES('68130f08eb140a2e4f6fbf30b5d15a38bbce5d554272531f34c06601b3a59983','original','bf66283085c2dd358f3d42381b9c1fdcae7f10313c8c95e66169b867d9159a02','23f4682c9367f04428fd7f381940f4c49feaef14bedff477d1344b4213277b97',0,'error:timeout',NULL,NULL,'{"message": "no"}',1,0,'c39aebc584814790a7b043bf67607736');
INSERT INTO "cells" VALUES('60063d05c43d932166207c1a7b12d76d5b0cb5673a0e07b3216eb729cedea298','original','499a5b537e9a33bb75e9f06d6c86c01488efc987d9d71ae9f369c1d40b346de0','9bcbe4c7fb47f302ded5279a94154dc5429644f7171c4f9a0b1045ba79ac19cf',0,'scored','tidy',0.0,'{"match": "exact"}',1,0,'19429e8c7bec4b5c8b5a973514f051cc');
INSERT INTO "cells" VALUES('60063d05c43d932166207c1a7b12d76d5b0cb5673a0e07b3216eb729cedea298','original','ea59ad5251aaee0b92be3cc3d64a4ef47a572638f72db1a81bcf8e6fd8be3712','9bcbe4c7fb47f302ded5279a94154dc5429644f7171c4f9a0b1045ba79ac19cf',0,'scored','fair',0.25,'{"match": "exact"}',1,0,'19429e8c7bec4b5c8b5a973514f051cc');
INSERT INTO "cells" VALUES('7870a6ee63ebdfe0d83bacc48db61466a67ab3cb8fcd9d5abbeca919dc8602b3','original','499a5b537e9a33bb75e9f06d6c86c01488efc987d9d71ae9f369c1d40b346de0','9bcbe4c7fb47f302ded5279a94154dc5429644f7171c4f9a0b1045ba79ac19cf',0,'scored','fair',0.5,'{"match": "exact"}',1,0,'db295a2f06a0438f8ceb69e925c59fca');
INSERT INTO "cells" VALUES('7870a6ee63ebdfe0d83bacc48db61466a67ab3cb8fcd9d5abbeca919dc8602b3','original','ea59ad5251aaee0b92be3cc3d64a4ef47a572638f72db1a81bcf8e6fd8be3712','9bcbe4c7fb47f302ded5279a94154dc5429644f7171c4f9a0b1045ba79ac19cf',0,'scored','fair',0.25,'{"match": "exact"}',1,0,'db295a2f06a0438f8ceb69e925c59fca');
INSERT INTO "cells" VALUES('68130f08eb140a2e4f6fbf30b5d15a38bbce5d554272531f34c06601b3a59983','original','499a5b537e9a33bb75e9f06d6c86c01488efc987d9d71ae9f369c1d40b346de0','9bcbe4c7fb47f302ded5279a94154dc5429644f7171c4f9a0b1045ba79ac19cf',0,'scored','untidy',1.0,'{"match": "exact"}',1,0,'cb55afad37284bcc9eae00ee98338f14');
INSERT INTO "cells" VALUES('68130f08eb140a2e4f6fbf30b5d15a38bbce5d554272531f34c06601b3a59983','original','ea59ad5251aaee0b92be3cc3d64a4ef47a572638f72db1a81bcf8e6fd8be3712','9bcbe4c7fb47f302ded5279a94154dc5429644f7171c4f9a0b1045ba79ac19cf',0,'scored','fair',0.25,'{"match": "exact"}',1,0,'cb55afad37284bcc9eae00ee98338f14');
INSERT INTO "cells" VALUES('60063d05c43d932166207c1a7b12d76d5b0cb5673a0e07b3216eb729cedea298','original','8e6b2cf07882b3fa953ed45b791e1e409133ee66d86d967833395b52159cf0df','9bcbe4c7fb47f302ded5279a94154dc5429644f7171c4f9a0b1045ba79ac19cf',0,'scored','untidy',0.0,'{"match": "exact"}',1,0,'955be6430fb142619e5d6078b70ef504');
INSERT INTO "cells" VALUES('7870a6ee63ebdfe0d83bacc48db61466a67ab3cb8fcd9d5abbeca919dc8602b3','original','8e6b2cf07882b3fa953ed45b791e1e409133ee66d86d967833395b52159cf0df','9bcbe4c7fb47f302ded5279a94154dc5429644f7171c4f9a0b1045ba79ac19cf',0,'scored','untidy',0.0,'{"match": "exact"}',1,0,'fc0d52cc06b44395a055f028c9e7493d');
CREATE TABLE criteria (
	criterion_key VARCHAR NOT NULL,
	criterion_id VARCHAR NOT NULL,
	record TEXT NOT NULL,
	used FLOAT NOT NULL,
	PRIMARY KEY (criterion_key)
);
INSERT INTO "criteria" VALUES('cf60bbb35c1a45c43ebd6ea8c2af7836c7f71020247328ddfd92849755d3079d','quality-0','{"id": "quality-0", "name": "quality 0", "description": "", "accepted_values": ["poor", "fair", "good", "very good", "perfect"], "scale": "ordinal", "order": "worst_to_best", "allow_na": false, "hint": null, "numeric_range": null, "sub_criteria": [], "aggregation": "mean", "expect": {}, "provenance": {"origin": "user", "seeds": [], "model": null, "prompt_sha256": null, "concept": null, "aliases": []}, "verification": null}',1700000000.0);
INSERT INTO "criteria" VALUES('bf66283085c2dd358f3d42381b9c1fdcae7f10313c8c95e66169b867d9159a02','quality-1','{"id": "quality-1", "name": "quality 1", "description": "", "accepted_values": ["poor", "fair", "good", "very good", "perfect"], "scale": "ordinal", "order": "worst_to_best", "allow_na": false, "hint": null, "numeric_range": null, "sub_criteria": [], "aggregation": "mean", "expect": {}, "provenance": {"origin": "user", "seeds": [], "model": null, "prompt_sha256": null, "concept": null, "aliases": []}, "verification": null}',1700000000.0);
INSERT INTO "criteria" VALUES('499a5b537e9a33bb75e9f06d6c86c01488efc987d9d71ae9f369c1d40b346de0','tidiness','{"id": "tidiness", "name": "tidiness", "description": "", "accepted_values": ["tidy", "fair", "untidy"], "scale": "ordinal", "order": "worst_to_best", "order_confirmed": false, "allow_na": false, "hint": null, "numeric_range": null, "sub_criteria": [], "aggregation": "mean", "expect": {}, "provenance": {"origin": "user", "seeds": [], "model": null, "prompt_sha256": null, "concept": null, "aliases": []}, "verification": null}',1.79536022290750765795e+09);
INSERT INTO "criteria" VALUES('ea59ad5251aaee0b92be3cc3d64a4ef47a572638f72db1a81bcf8e6fd8be3712','other','{"id": "other", "name": "other", "description": "", "accepted_values": ["poor", "fair", "good", "very good", "perfect"], "scale": "ordinal", "order": "worst_to_best", "order_confirmed": false, "allow_na": false, "hint": null, "numeric_range": null, "sub_criteria": [], "aggregation": "mean", "expect": {}, "provenance": {"origin": "user", "seeds": [], "model": null, "prompt_sha256": null, "concept": null, "aliases": []}, "verification": null}',1.79536022290750765795e+09);
INSERT INTO "criteria" VALUES('8e6b2cf07882b3fa953ed45b791e1e409133ee66d86d967833395b52159cf0df','tidiness','{"id": "tidiness", "name": "tidiness", "description": "", "accepted_values": ["untidy", "fair", "tidy"], "scale": "ordinal", "order": "worst_to_best", "order_confirmed": false, "allow_na": false, "hint": null, "numeric_range": null, "sub_criteria": [], "aggregation": "mean", "expect": {}, "provenance": {"origin": "user", "seeds": [], "model": null, "prompt_sha256": null, "concept": null, "aliases": []}, "verification": null}',1.79536022306283450126e+09);
CREATE TABLE meta (
	"key" VARCHAR NOT NULL,
	value BLOB NOT NULL,
	PRIMARY KEY ("key")
);
INSERT INTO "meta" VALUES('version',X'33');
INSERT INTO "meta" VALUES('secret',X'522572E292B8769F01CC5C47B7D74BF5050BF3768D739829C4784849C5E2E8AD');
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
	origin VARCHAR,
	PRIMARY KEY (run_key)
);
INSERT INTO "runs" VALUES('60063d05c43d932166207c1a7b12d76d5b0cb5673a0e07b3216eb729cedea298','run-0','sums','style-0','a2dbdcc17a5fcb4197680531ba1213a341ff4ecc2eacddde6ba1e157868676dd',1,'problem 0','because 2 + 2 = 4 (0)',0,1.79536022306283450126e+09,NULL);
INSERT INTO "runs" VALUES('7870a6ee63ebdfe0d83bacc48db61466a67ab3cb8fcd9d5abbeca919dc8602b3','run-1','sums','style-1','a2dbdcc17a5fcb4197680531ba1213a341ff4ecc2eacddde6ba1e157868676dd',0,'problem 0','because 2 + 2 = 4 (1)',0,1.79536022306283450126e+09,NULL);
INSERT INTO "runs" VALUES('68130f08eb140a2e4f6fbf30b5d15a38bbce5d554272531f34c06601b3a59983','run-2','sums','style-2','a2dbdcc17a5fcb4197680531ba1213a341ff4ecc2eacddde6ba1e157868676dd',1,'problem 0','because 2 + 2 = 4 (2)',0,1.79536022290750765795e+09,NULL);
CREATE TABLE sources (
	source_key VARCHAR NOT NULL,
	evaluator VARCHAR NOT NULL,
	model VARCHAR NOT NULL,
	record TEXT NOT NULL,
	used FLOAT NOT NULL,
	PRIMARY KEY (source_key)
);
INSERT INTO "sources" VALUES('23f4682c9367f04428fd7f381940f4c49feaef14bedff477d1344b4213277b97','test','scripted','{"evaluator": "test", "version": 1, "model": "scripted", "prompt_sha256": "v1", "parameters": {}, "seed": 0}',1700000000.0);
INSERT INTO "sources" VALUES('9bcbe4c7fb47f302ded5279a94154dc5429644f7171c4f9a0b1045ba79ac19cf','test','scripted','{"evaluator": "test", "version": 1, "model": "scripted", "prompt_sha256": "v1", "parameters": {}, "seed": 1}',1.79536022306283450126e+09);
CREATE TABLE systems (
        system_key VARCHAR NOT NULL,
        name VARCHAR NOT NULL,
        parameters TEXT NOT NULL,
        PRIMARY KEY (system_key)
    );
CREATE TABLE trials (
        evaluator VARCHAR NOT NULL,
        system_key VARCHAR NOT NULL,
        case_key VARCHAR NOT NULL,
        trial INTEGER NOT NULL,
        case_id VARCHAR NOT NULL,
        status VARCHAR NOT NULL,
        outcome VARCHAR,
        check_key VARCHAR,
        tries INTEGER NOT NULL,
        started FLOAT,
        ended FLOAT,
        requests INTEGER,
        prompt_tokens INTEGER,
        completion_tokens INTEGER,
        cost FLOAT,
        verdict TEXT,
        log TEXT NOT NULL,
        PRIMARY KEY (evaluator, system_key, case_key, trial),
        FOREIGN KEY (evaluator, case_key) REFERENCES cases (evaluator, case_key),
        FOREIGN KEY (system_key) REFERENCES systems (system_key)
    );
CREATE INDEX calls_by_source ON calls (source_key);
COMMIT;
