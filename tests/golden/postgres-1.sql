--
-- PostgreSQL database dump
--



-- Dumped from database version 18.6
-- Dumped by pg_dump version 18.6

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: refold; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA refold;


--
-- Name: vector; Type: EXTENSION; Schema: -; Owner: -
--

CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA refold;


--
-- Name: EXTENSION vector; Type: COMMENT; Schema: -; Owner: -
--

COMMENT ON EXTENSION vector IS 'vector data type and ivfflat and hnsw access methods';


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: encryption_keys; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.encryption_keys (
    fingerprint text NOT NULL
);


--
-- Name: erased_keys_in_wal; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.erased_keys_in_wal (
    only_row boolean DEFAULT true NOT NULL,
    written_at pg_lsn NOT NULL,
    highest text,
    CONSTRAINT erased_keys_in_wal_only_row_check CHECK (only_row)
);


--
-- Name: event_ids; Type: SEQUENCE; Schema: refold; Owner: -
--

CREATE SEQUENCE refold.event_ids
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: log_positions; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.log_positions (
    "position" bigint NOT NULL,
    id bigint NOT NULL
);


--
-- Name: message_keys; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.message_keys (
    originator_id text NOT NULL COLLATE pg_catalog."C",
    digest bytea NOT NULL,
    originator_version bigint NOT NULL
);


--
-- Name: missing_ids; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.missing_ids (
    first_id bigint NOT NULL,
    last_id bigint NOT NULL,
    ended_by text NOT NULL
);


--
-- Name: numbering; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.numbering (
    only_row boolean DEFAULT true NOT NULL,
    "position" bigint NOT NULL,
    last_id bigint NOT NULL,
    CONSTRAINT numbering_only_row_check CHECK (only_row)
);


--
-- Name: payload_keys; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.payload_keys (
    originator_id text NOT NULL COLLATE pg_catalog."C",
    originator_version bigint NOT NULL,
    key bytea NOT NULL
)
PARTITION BY HASH (originator_id);


--
-- Name: payload_keys_00; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.payload_keys_00 (
    originator_id text CONSTRAINT payload_keys_originator_id_not_null NOT NULL COLLATE pg_catalog."C",
    originator_version bigint CONSTRAINT payload_keys_originator_version_not_null NOT NULL,
    key bytea CONSTRAINT payload_keys_key_not_null NOT NULL
);
ALTER TABLE ONLY refold.payload_keys_00 ALTER COLUMN key SET STATISTICS 0;


--
-- Name: payload_keys_01; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.payload_keys_01 (
    originator_id text CONSTRAINT payload_keys_originator_id_not_null NOT NULL COLLATE pg_catalog."C",
    originator_version bigint CONSTRAINT payload_keys_originator_version_not_null NOT NULL,
    key bytea CONSTRAINT payload_keys_key_not_null NOT NULL
);
ALTER TABLE ONLY refold.payload_keys_01 ALTER COLUMN key SET STATISTICS 0;


--
-- Name: payload_keys_02; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.payload_keys_02 (
    originator_id text CONSTRAINT payload_keys_originator_id_not_null NOT NULL COLLATE pg_catalog."C",
    originator_version bigint CONSTRAINT payload_keys_originator_version_not_null NOT NULL,
    key bytea CONSTRAINT payload_keys_key_not_null NOT NULL
);
ALTER TABLE ONLY refold.payload_keys_02 ALTER COLUMN key SET STATISTICS 0;


--
-- Name: payload_keys_03; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.payload_keys_03 (
    originator_id text CONSTRAINT payload_keys_originator_id_not_null NOT NULL COLLATE pg_catalog."C",
    originator_version bigint CONSTRAINT payload_keys_originator_version_not_null NOT NULL,
    key bytea CONSTRAINT payload_keys_key_not_null NOT NULL
);
ALTER TABLE ONLY refold.payload_keys_03 ALTER COLUMN key SET STATISTICS 0;


--
-- Name: payload_keys_04; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.payload_keys_04 (
    originator_id text CONSTRAINT payload_keys_originator_id_not_null NOT NULL COLLATE pg_catalog."C",
    originator_version bigint CONSTRAINT payload_keys_originator_version_not_null NOT NULL,
    key bytea CONSTRAINT payload_keys_key_not_null NOT NULL
);
ALTER TABLE ONLY refold.payload_keys_04 ALTER COLUMN key SET STATISTICS 0;


--
-- Name: payload_keys_05; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.payload_keys_05 (
    originator_id text CONSTRAINT payload_keys_originator_id_not_null NOT NULL COLLATE pg_catalog."C",
    originator_version bigint CONSTRAINT payload_keys_originator_version_not_null NOT NULL,
    key bytea CONSTRAINT payload_keys_key_not_null NOT NULL
);
ALTER TABLE ONLY refold.payload_keys_05 ALTER COLUMN key SET STATISTICS 0;


--
-- Name: payload_keys_06; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.payload_keys_06 (
    originator_id text CONSTRAINT payload_keys_originator_id_not_null NOT NULL COLLATE pg_catalog."C",
    originator_version bigint CONSTRAINT payload_keys_originator_version_not_null NOT NULL,
    key bytea CONSTRAINT payload_keys_key_not_null NOT NULL
);
ALTER TABLE ONLY refold.payload_keys_06 ALTER COLUMN key SET STATISTICS 0;


--
-- Name: payload_keys_07; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.payload_keys_07 (
    originator_id text CONSTRAINT payload_keys_originator_id_not_null NOT NULL COLLATE pg_catalog."C",
    originator_version bigint CONSTRAINT payload_keys_originator_version_not_null NOT NULL,
    key bytea CONSTRAINT payload_keys_key_not_null NOT NULL
);
ALTER TABLE ONLY refold.payload_keys_07 ALTER COLUMN key SET STATISTICS 0;


--
-- Name: payload_keys_08; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.payload_keys_08 (
    originator_id text CONSTRAINT payload_keys_originator_id_not_null NOT NULL COLLATE pg_catalog."C",
    originator_version bigint CONSTRAINT payload_keys_originator_version_not_null NOT NULL,
    key bytea CONSTRAINT payload_keys_key_not_null NOT NULL
);
ALTER TABLE ONLY refold.payload_keys_08 ALTER COLUMN key SET STATISTICS 0;


--
-- Name: payload_keys_09; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.payload_keys_09 (
    originator_id text CONSTRAINT payload_keys_originator_id_not_null NOT NULL COLLATE pg_catalog."C",
    originator_version bigint CONSTRAINT payload_keys_originator_version_not_null NOT NULL,
    key bytea CONSTRAINT payload_keys_key_not_null NOT NULL
);
ALTER TABLE ONLY refold.payload_keys_09 ALTER COLUMN key SET STATISTICS 0;


--
-- Name: payload_keys_10; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.payload_keys_10 (
    originator_id text CONSTRAINT payload_keys_originator_id_not_null NOT NULL COLLATE pg_catalog."C",
    originator_version bigint CONSTRAINT payload_keys_originator_version_not_null NOT NULL,
    key bytea CONSTRAINT payload_keys_key_not_null NOT NULL
);
ALTER TABLE ONLY refold.payload_keys_10 ALTER COLUMN key SET STATISTICS 0;


--
-- Name: payload_keys_11; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.payload_keys_11 (
    originator_id text CONSTRAINT payload_keys_originator_id_not_null NOT NULL COLLATE pg_catalog."C",
    originator_version bigint CONSTRAINT payload_keys_originator_version_not_null NOT NULL,
    key bytea CONSTRAINT payload_keys_key_not_null NOT NULL
);
ALTER TABLE ONLY refold.payload_keys_11 ALTER COLUMN key SET STATISTICS 0;


--
-- Name: payload_keys_12; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.payload_keys_12 (
    originator_id text CONSTRAINT payload_keys_originator_id_not_null NOT NULL COLLATE pg_catalog."C",
    originator_version bigint CONSTRAINT payload_keys_originator_version_not_null NOT NULL,
    key bytea CONSTRAINT payload_keys_key_not_null NOT NULL
);
ALTER TABLE ONLY refold.payload_keys_12 ALTER COLUMN key SET STATISTICS 0;


--
-- Name: payload_keys_13; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.payload_keys_13 (
    originator_id text CONSTRAINT payload_keys_originator_id_not_null NOT NULL COLLATE pg_catalog."C",
    originator_version bigint CONSTRAINT payload_keys_originator_version_not_null NOT NULL,
    key bytea CONSTRAINT payload_keys_key_not_null NOT NULL
);
ALTER TABLE ONLY refold.payload_keys_13 ALTER COLUMN key SET STATISTICS 0;


--
-- Name: payload_keys_14; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.payload_keys_14 (
    originator_id text CONSTRAINT payload_keys_originator_id_not_null NOT NULL COLLATE pg_catalog."C",
    originator_version bigint CONSTRAINT payload_keys_originator_version_not_null NOT NULL,
    key bytea CONSTRAINT payload_keys_key_not_null NOT NULL
);
ALTER TABLE ONLY refold.payload_keys_14 ALTER COLUMN key SET STATISTICS 0;


--
-- Name: payload_keys_15; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.payload_keys_15 (
    originator_id text CONSTRAINT payload_keys_originator_id_not_null NOT NULL COLLATE pg_catalog."C",
    originator_version bigint CONSTRAINT payload_keys_originator_version_not_null NOT NULL,
    key bytea CONSTRAINT payload_keys_key_not_null NOT NULL
);
ALTER TABLE ONLY refold.payload_keys_15 ALTER COLUMN key SET STATISTICS 0;


--
-- Name: pending_erasures; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.pending_erasures (
    number bigint NOT NULL,
    originator_id text NOT NULL COLLATE pg_catalog."C"
);


--
-- Name: pending_erasures_number_seq; Type: SEQUENCE; Schema: refold; Owner: -
--

ALTER TABLE refold.pending_erasures ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME refold.pending_erasures_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: schema_versions; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.schema_versions (
    version integer NOT NULL,
    oldest_code integer NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL
);


--
-- Name: stored_events; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.stored_events (
    id bigint DEFAULT 
CASE
    WHEN (pg_current_xact_id() IS NOT NULL) THEN nextval('refold.event_ids'::regclass)
    ELSE NULL::bigint
END NOT NULL,
    originator_id text NOT NULL COLLATE pg_catalog."C",
    originator_version bigint NOT NULL,
    topic text NOT NULL COLLATE pg_catalog."C",
    state bytea NOT NULL
);
ALTER TABLE ONLY refold.stored_events ALTER COLUMN state SET STATISTICS 0;
ALTER TABLE ONLY refold.stored_events ALTER COLUMN state SET STORAGE EXTERNAL;


--
-- Name: stored_snapshots; Type: TABLE; Schema: refold; Owner: -
--

CREATE UNLOGGED TABLE refold.stored_snapshots (
    originator_id text NOT NULL COLLATE pg_catalog."C",
    originator_version bigint NOT NULL,
    topic text NOT NULL COLLATE pg_catalog."C",
    state bytea NOT NULL
);
ALTER TABLE ONLY refold.stored_snapshots ALTER COLUMN state SET STATISTICS 0;
ALTER TABLE ONLY refold.stored_snapshots ALTER COLUMN state SET STORAGE EXTERNAL;


--
-- Name: vector_models; Type: TABLE; Schema: refold; Owner: -
--

CREATE UNLOGGED TABLE refold.vector_models (
    number integer NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    dimension integer NOT NULL,
    made_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);


--
-- Name: vector_models_number_seq; Type: SEQUENCE; Schema: refold; Owner: -
--

ALTER TABLE refold.vector_models ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME refold.vector_models_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: vector_prunings; Type: TABLE; Schema: refold; Owner: -
--

CREATE UNLOGGED TABLE refold.vector_prunings (
    only_row boolean DEFAULT true NOT NULL,
    number bigint NOT NULL
);


--
-- Name: vectors; Type: TABLE; Schema: refold; Owner: -
--

CREATE UNLOGGED TABLE refold.vectors (
    id bigint NOT NULL,
    model integer NOT NULL,
    digest text NOT NULL COLLATE pg_catalog."C",
    vector bytea NOT NULL,
    checksum bigint NOT NULL,
    half refold.halfvec
);
ALTER TABLE ONLY refold.vectors ALTER COLUMN digest SET STATISTICS 0;
ALTER TABLE ONLY refold.vectors ALTER COLUMN vector SET STATISTICS 0;
ALTER TABLE ONLY refold.vectors ALTER COLUMN vector SET STORAGE EXTERNAL;
ALTER TABLE ONLY refold.vectors ALTER COLUMN half SET STATISTICS 0;
ALTER TABLE ONLY refold.vectors ALTER COLUMN half SET STORAGE MAIN;


--
-- Name: vectors_id_seq; Type: SEQUENCE; Schema: refold; Owner: -
--

ALTER TABLE refold.vectors ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME refold.vectors_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: payload_keys_00; Type: TABLE ATTACH; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.payload_keys ATTACH PARTITION refold.payload_keys_00 FOR VALUES WITH (modulus 16, remainder 0);


--
-- Name: payload_keys_01; Type: TABLE ATTACH; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.payload_keys ATTACH PARTITION refold.payload_keys_01 FOR VALUES WITH (modulus 16, remainder 1);


--
-- Name: payload_keys_02; Type: TABLE ATTACH; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.payload_keys ATTACH PARTITION refold.payload_keys_02 FOR VALUES WITH (modulus 16, remainder 2);


--
-- Name: payload_keys_03; Type: TABLE ATTACH; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.payload_keys ATTACH PARTITION refold.payload_keys_03 FOR VALUES WITH (modulus 16, remainder 3);


--
-- Name: payload_keys_04; Type: TABLE ATTACH; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.payload_keys ATTACH PARTITION refold.payload_keys_04 FOR VALUES WITH (modulus 16, remainder 4);


--
-- Name: payload_keys_05; Type: TABLE ATTACH; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.payload_keys ATTACH PARTITION refold.payload_keys_05 FOR VALUES WITH (modulus 16, remainder 5);


--
-- Name: payload_keys_06; Type: TABLE ATTACH; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.payload_keys ATTACH PARTITION refold.payload_keys_06 FOR VALUES WITH (modulus 16, remainder 6);


--
-- Name: payload_keys_07; Type: TABLE ATTACH; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.payload_keys ATTACH PARTITION refold.payload_keys_07 FOR VALUES WITH (modulus 16, remainder 7);


--
-- Name: payload_keys_08; Type: TABLE ATTACH; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.payload_keys ATTACH PARTITION refold.payload_keys_08 FOR VALUES WITH (modulus 16, remainder 8);


--
-- Name: payload_keys_09; Type: TABLE ATTACH; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.payload_keys ATTACH PARTITION refold.payload_keys_09 FOR VALUES WITH (modulus 16, remainder 9);


--
-- Name: payload_keys_10; Type: TABLE ATTACH; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.payload_keys ATTACH PARTITION refold.payload_keys_10 FOR VALUES WITH (modulus 16, remainder 10);


--
-- Name: payload_keys_11; Type: TABLE ATTACH; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.payload_keys ATTACH PARTITION refold.payload_keys_11 FOR VALUES WITH (modulus 16, remainder 11);


--
-- Name: payload_keys_12; Type: TABLE ATTACH; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.payload_keys ATTACH PARTITION refold.payload_keys_12 FOR VALUES WITH (modulus 16, remainder 12);


--
-- Name: payload_keys_13; Type: TABLE ATTACH; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.payload_keys ATTACH PARTITION refold.payload_keys_13 FOR VALUES WITH (modulus 16, remainder 13);


--
-- Name: payload_keys_14; Type: TABLE ATTACH; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.payload_keys ATTACH PARTITION refold.payload_keys_14 FOR VALUES WITH (modulus 16, remainder 14);


--
-- Name: payload_keys_15; Type: TABLE ATTACH; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.payload_keys ATTACH PARTITION refold.payload_keys_15 FOR VALUES WITH (modulus 16, remainder 15);


--
-- Data for Name: encryption_keys; Type: TABLE DATA; Schema: refold; Owner: -
--



--
-- Data for Name: erased_keys_in_wal; Type: TABLE DATA; Schema: refold; Owner: -
--



--
-- Data for Name: log_positions; Type: TABLE DATA; Schema: refold; Owner: -
--

INSERT INTO refold.log_positions VALUES (1, 1);
INSERT INTO refold.log_positions VALUES (2, 2);
INSERT INTO refold.log_positions VALUES (3, 3);
INSERT INTO refold.log_positions VALUES (4, 4);
INSERT INTO refold.log_positions VALUES (5, 5);
INSERT INTO refold.log_positions VALUES (6, 6);
INSERT INTO refold.log_positions VALUES (7, 7);
INSERT INTO refold.log_positions VALUES (8, 8);
INSERT INTO refold.log_positions VALUES (9, 9);
INSERT INTO refold.log_positions VALUES (10, 10);
INSERT INTO refold.log_positions VALUES (11, 11);
INSERT INTO refold.log_positions VALUES (12, 12);
INSERT INTO refold.log_positions VALUES (13, 13);
INSERT INTO refold.log_positions VALUES (14, 14);
INSERT INTO refold.log_positions VALUES (15, 15);
INSERT INTO refold.log_positions VALUES (16, 16);
INSERT INTO refold.log_positions VALUES (17, 17);
INSERT INTO refold.log_positions VALUES (18, 18);
INSERT INTO refold.log_positions VALUES (19, 19);
INSERT INTO refold.log_positions VALUES (20, 20);
INSERT INTO refold.log_positions VALUES (21, 21);
INSERT INTO refold.log_positions VALUES (22, 22);
INSERT INTO refold.log_positions VALUES (23, 23);
INSERT INTO refold.log_positions VALUES (24, 24);
INSERT INTO refold.log_positions VALUES (25, 25);
INSERT INTO refold.log_positions VALUES (26, 26);
INSERT INTO refold.log_positions VALUES (27, 27);
INSERT INTO refold.log_positions VALUES (28, 28);
INSERT INTO refold.log_positions VALUES (29, 29);
INSERT INTO refold.log_positions VALUES (30, 30);
INSERT INTO refold.log_positions VALUES (31, 31);
INSERT INTO refold.log_positions VALUES (32, 32);
INSERT INTO refold.log_positions VALUES (33, 33);
INSERT INTO refold.log_positions VALUES (34, 34);
INSERT INTO refold.log_positions VALUES (35, 35);
INSERT INTO refold.log_positions VALUES (36, 36);
INSERT INTO refold.log_positions VALUES (37, 37);
INSERT INTO refold.log_positions VALUES (38, 38);
INSERT INTO refold.log_positions VALUES (39, 39);
INSERT INTO refold.log_positions VALUES (40, 40);
INSERT INTO refold.log_positions VALUES (41, 41);
INSERT INTO refold.log_positions VALUES (42, 42);
INSERT INTO refold.log_positions VALUES (43, 43);
INSERT INTO refold.log_positions VALUES (44, 44);
INSERT INTO refold.log_positions VALUES (45, 45);
INSERT INTO refold.log_positions VALUES (46, 46);
INSERT INTO refold.log_positions VALUES (47, 47);
INSERT INTO refold.log_positions VALUES (48, 48);
INSERT INTO refold.log_positions VALUES (49, 49);
INSERT INTO refold.log_positions VALUES (50, 50);
INSERT INTO refold.log_positions VALUES (51, 51);
INSERT INTO refold.log_positions VALUES (52, 52);
INSERT INTO refold.log_positions VALUES (53, 53);
INSERT INTO refold.log_positions VALUES (54, 54);
INSERT INTO refold.log_positions VALUES (55, 55);
INSERT INTO refold.log_positions VALUES (56, 56);
INSERT INTO refold.log_positions VALUES (57, 57);
INSERT INTO refold.log_positions VALUES (58, 58);
INSERT INTO refold.log_positions VALUES (59, 59);
INSERT INTO refold.log_positions VALUES (60, 60);
INSERT INTO refold.log_positions VALUES (61, 61);
INSERT INTO refold.log_positions VALUES (62, 62);
INSERT INTO refold.log_positions VALUES (63, 63);
INSERT INTO refold.log_positions VALUES (64, 64);
INSERT INTO refold.log_positions VALUES (65, 65);
INSERT INTO refold.log_positions VALUES (66, 66);
INSERT INTO refold.log_positions VALUES (67, 67);
INSERT INTO refold.log_positions VALUES (68, 68);
INSERT INTO refold.log_positions VALUES (69, 69);
INSERT INTO refold.log_positions VALUES (70, 70);
INSERT INTO refold.log_positions VALUES (71, 71);
INSERT INTO refold.log_positions VALUES (72, 72);
INSERT INTO refold.log_positions VALUES (73, 73);
INSERT INTO refold.log_positions VALUES (74, 74);
INSERT INTO refold.log_positions VALUES (75, 75);
INSERT INTO refold.log_positions VALUES (76, 76);
INSERT INTO refold.log_positions VALUES (77, 77);
INSERT INTO refold.log_positions VALUES (78, 78);
INSERT INTO refold.log_positions VALUES (79, 79);
INSERT INTO refold.log_positions VALUES (80, 80);
INSERT INTO refold.log_positions VALUES (81, 81);
INSERT INTO refold.log_positions VALUES (82, 82);
INSERT INTO refold.log_positions VALUES (83, 83);
INSERT INTO refold.log_positions VALUES (84, 84);
INSERT INTO refold.log_positions VALUES (85, 85);
INSERT INTO refold.log_positions VALUES (86, 86);
INSERT INTO refold.log_positions VALUES (87, 87);
INSERT INTO refold.log_positions VALUES (88, 88);
INSERT INTO refold.log_positions VALUES (89, 89);
INSERT INTO refold.log_positions VALUES (90, 90);
INSERT INTO refold.log_positions VALUES (91, 91);
INSERT INTO refold.log_positions VALUES (92, 92);
INSERT INTO refold.log_positions VALUES (93, 93);
INSERT INTO refold.log_positions VALUES (94, 94);
INSERT INTO refold.log_positions VALUES (95, 95);
INSERT INTO refold.log_positions VALUES (96, 96);
INSERT INTO refold.log_positions VALUES (97, 97);
INSERT INTO refold.log_positions VALUES (98, 98);
INSERT INTO refold.log_positions VALUES (99, 99);
INSERT INTO refold.log_positions VALUES (100, 100);
INSERT INTO refold.log_positions VALUES (101, 101);
INSERT INTO refold.log_positions VALUES (102, 102);
INSERT INTO refold.log_positions VALUES (103, 103);
INSERT INTO refold.log_positions VALUES (104, 104);
INSERT INTO refold.log_positions VALUES (105, 105);
INSERT INTO refold.log_positions VALUES (106, 106);
INSERT INTO refold.log_positions VALUES (107, 107);


--
-- Data for Name: message_keys; Type: TABLE DATA; Schema: refold; Owner: -
--

INSERT INTO refold.message_keys VALUES ('compacted', '\x285d9c3638039c6879c2adc7699a66e2869fb3ca9c17f77b94a48c1ca9315be9', 1);
INSERT INTO refold.message_keys VALUES ('compacted', '\x051e8b95176e1d7bdbb944e606c567a094602706839ce3669d21d0366f38d654', 2);
INSERT INTO refold.message_keys VALUES ('compacted', '\xd5993897b05ad704263c8800aed3790cee4195f2deec651fd781f654eb514199', 3);
INSERT INTO refold.message_keys VALUES ('compacted', '\xc51765abee4a35b2d4db517ec777b2282cea5f2baa4945c1b9c0f8f7815460c7', 4);
INSERT INTO refold.message_keys VALUES ('compacted', '\x1a99d9700c7e4e8cf9033d5ee8be9210f1b249a33ebfe95334cf6523ab991e75', 5);
INSERT INTO refold.message_keys VALUES ('compacted', '\x33483ae2c03274ca538553029947514815c04cad92cef626cbaf5c1a672d3319', 6);
INSERT INTO refold.message_keys VALUES ('compacted', '\x10880830c13bad528a19ca17364763c3a7201c89e296ba460f8fd9a9f14b3c47', 7);


--
-- Data for Name: missing_ids; Type: TABLE DATA; Schema: refold; Owner: -
--



--
-- Data for Name: numbering; Type: TABLE DATA; Schema: refold; Owner: -
--

INSERT INTO refold.numbering VALUES (true, 107, 107);


--
-- Data for Name: payload_keys_00; Type: TABLE DATA; Schema: refold; Owner: -
--



--
-- Data for Name: payload_keys_01; Type: TABLE DATA; Schema: refold; Owner: -
--



--
-- Data for Name: payload_keys_02; Type: TABLE DATA; Schema: refold; Owner: -
--



--
-- Data for Name: payload_keys_03; Type: TABLE DATA; Schema: refold; Owner: -
--



--
-- Data for Name: payload_keys_04; Type: TABLE DATA; Schema: refold; Owner: -
--



--
-- Data for Name: payload_keys_05; Type: TABLE DATA; Schema: refold; Owner: -
--



--
-- Data for Name: payload_keys_06; Type: TABLE DATA; Schema: refold; Owner: -
--



--
-- Data for Name: payload_keys_07; Type: TABLE DATA; Schema: refold; Owner: -
--



--
-- Data for Name: payload_keys_08; Type: TABLE DATA; Schema: refold; Owner: -
--



--
-- Data for Name: payload_keys_09; Type: TABLE DATA; Schema: refold; Owner: -
--

INSERT INTO refold.payload_keys_09 VALUES ('failed', 1, '\xf0497b4e5eee534e56af22f1272f3b1ebb6bb0a9bcdbcee238f5cb28713c31ac');
INSERT INTO refold.payload_keys_09 VALUES ('failed', 2, '\xb0c086e6a44e228d2e86521c32ce22da82d1e44f7e0dbf1e6f0c4b836b48496a');
INSERT INTO refold.payload_keys_09 VALUES ('failed', 3, '\x5192cfe2dc1429ea79e9f9dc0607b74588f3e5155b747ac7882721358cc04e5c');
INSERT INTO refold.payload_keys_09 VALUES ('failed', 4, '\x3afca6ca5853d094a821bd27032de2529cd086446f6fb43b5e2ccc8a22b9f0ab');
INSERT INTO refold.payload_keys_09 VALUES ('failed', 5, '\xdecd794eb1b843c8936b508ae27dccacb40bde4c8c49ae6fb946271472cb1258');
INSERT INTO refold.payload_keys_09 VALUES ('failed', 6, '\xbb009951213950d49ca8d330fe28550e68b26a03be78035ff51f98404ca673e2');
INSERT INTO refold.payload_keys_09 VALUES ('failed', 7, '\xdddd0a71bf6ceaa95a44d794bfd98f18ddddfa7237b63fb10d45ca5b4be7d0be');
INSERT INTO refold.payload_keys_09 VALUES ('failed', 8, '\x6956e586d0fd4015d5898715a616dfb3515f1b790be4373b3dcca9a47197f47d');
INSERT INTO refold.payload_keys_09 VALUES ('failed', 9, '\x437a1ac20721cd868ae26837d98a4198e3984fb50d0b7b9e2205057dfa124f80');
INSERT INTO refold.payload_keys_09 VALUES ('failed', 10, '\x396877fa429b9cc6662792e3919ef89343be92a86796e10738231ea20f04a2bb');
INSERT INTO refold.payload_keys_09 VALUES ('failed', 11, '\x671dfaa575620956fa3966b86dd7213c896dfd3f21c3bd245169a9971106d02b');
INSERT INTO refold.payload_keys_09 VALUES ('failed', 12, '\xb6bd7d3ebeeae646e451c1a07c223a428d3abeabc3592baaf9b33ed75cbf0a39');
INSERT INTO refold.payload_keys_09 VALUES ('failed', 13, '\x36a4bbe0fad871dc36193fe2dacf0322d76818eca203f9513cae80f8e14cf6fd');
INSERT INTO refold.payload_keys_09 VALUES ('failed', 14, '\xdbef066af04283923dcaee4f34328047db80a5d93baab010fb8a12384d528e38');
INSERT INTO refold.payload_keys_09 VALUES ('failed', 15, '\xe082cc8fda62ac676dcb6d56207154b5ffb56b67e688a8f9aa9fbd6372f71fbf');
INSERT INTO refold.payload_keys_09 VALUES ('failed', 16, '\x33322f6a0e05bfbc56be477be77c8ba90a53257a61f26b49767f7085bcd993b4');
INSERT INTO refold.payload_keys_09 VALUES ('failed', 17, '\xc88bc8c2b806c1f9448bbb7ff399726ff77d547ee06b834ed597789fb288a089');
INSERT INTO refold.payload_keys_09 VALUES ('failed', 18, '\xbd2e997ddab47709cfaa35a2f7e4352964322acf6bf68d56d59d06dffe371457');
INSERT INTO refold.payload_keys_09 VALUES ('failed', 19, '\x38b7819b13da9caad45783d9412e29616e37d4687554c58eccc4faea77cf2de6');
INSERT INTO refold.payload_keys_09 VALUES ('failed', 20, '\x694138d3882eab74924d489bb30eb21689f06017f6b0f000a6e30bdfa3cb5e1d');


--
-- Data for Name: payload_keys_10; Type: TABLE DATA; Schema: refold; Owner: -
--

INSERT INTO refold.payload_keys_10 VALUES ('compacted', 1, '\x150d11232c9d39939e2ea9f18f1e750af64b3df1b0b242e25d7c54c65b8ed972');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 2, '\x6ea9a9042f09795a4a03c4fd2645660256edd4ed46ed970624a1e3f09f8da811');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 3, '\x5e292d59bbedd31b9b1600f3676988f0159bac5703f04215cffdfaafae41f5d7');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 4, '\x688ec1929e98e7efe0d1aef98f51baae303772ea29759f8555e18be854171b6c');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 5, '\x56ba64eb7d1fe87ae0f674e24de6776437bdbf7ab71bd46d97104c845644a29a');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 6, '\x79cc7a9252ccfa54a40c6b656b851404c4c212fff619cec41547a905722b2fae');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 7, '\x99a6918dbeb098b6fe90aed7137e581cbdf97beba31d7b30f69d71944f5b14b1');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 8, '\xfd66e1d26c1e60636eab0bd87d119c71e6f48302ff56f6aa803a0a430c7ee50a');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 9, '\xa055387b7fb133796b20d52a0890feb9b60580033df70ebe19c4f6ba3fc0115f');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 10, '\x30617212aac2ec4ed43b942ece4ee685cc386f4c6f1a1bc14438e40db5bc3e4c');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 11, '\xd0e301353452a2adb322aa6b537cbcd7d06975d588c72d066e66a4fc4da03978');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 12, '\x9893836b29d145aaf62e357165cfcbace479b6b21909f02b71d7cf16d5e43058');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 13, '\xd55ae7da8ed1cfe4516717b1a661f2ede118c19ae738331c03d0aee03e19adb5');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 14, '\x995928cfdd80a6236ce17afd4892d9a190ce1e89fd1a1575ae5c85d0981270b5');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 15, '\xd5a6e70542845a0046515ba9e669d64e62a19cc682b7192f037ade1cd86f6a28');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 16, '\x1a7727b9a98ffedf21207142a69d4134bdc4d2e017fccbe10b04cf5819b39f35');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 17, '\x6b3f52f7ee35fd60d3ec6bf4c96946ecf865087cf09e256fafe97117fa7c5e7c');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 18, '\xf62b8bfc08a280ff765e722359d0bdfedf173d0bb6256db30c419f97ad2dd9d7');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 19, '\xe1d482c37f42f42e77c356b1c4a6e5630b7403ffd7df182a7acb453a7f343097');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 20, '\x5187b84945154419da99070cf6eac2f773738b095486cc66ac06760d8285d543');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 21, '\x5e83a4b8ee91948392a1d189636878157b13400bf343670ba86e58201e768cc6');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 22, '\xee1c46ee289927a56ff2863af728105dcebbd5d08521e6ea6b1a8ac60d16d9c7');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 23, '\xbebb90b843c41dd5300a6d5d682ef10ebfe3d9994e812abc8b6587eeb92cf2cb');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 24, '\xfd6c3135e48c06c9de38dad81633474ee47d02a72240c966755de6978f8b9345');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 25, '\x54662529a6c32a18308edb22f6ee2d89af4acd7a99fecd3af44e869a75911d2b');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 26, '\x9c3970edaae88524a524223319a8773ab04bde7c03d46246b11993902da788a2');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 27, '\xa4bef722795b69cc01f6b7b4674fe92a8c504fb9e7548505b42a79ab8821470c');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 28, '\xe08767f1ae7491c01b3689e13248e4540a0bef0b7d7dad34a651ceb6b0676c36');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 29, '\xa2e1e5638e33122f5124a6c1e2a9a79b93713794143e0d25c85e586e436e5500');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 30, '\x3686d0498769c7aaf8944db82236ca095d4e8e31bc03345ca12c62030b7c951b');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 31, '\x28795e26c70164771561bf573388c381cca1a384dfe5cde463d420820ae4d809');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 32, '\x0bbb33005179449250acb93291105e775f65299a6c987cf927851163fd1b64b0');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 33, '\xf9c7f6e9d6bb85dd541b79aac49ff4dafc8b44351add48806e6c3bfa461825ef');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 34, '\xc121726f1c952582764c9cd9d50a24b4198c9ee72d88d6a6f4c2ac34d51a3aa6');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 35, '\x8d14ce7a069bbf09a47aa52ccf94876cec51e23485476cf6b9ebc6ebc842848d');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 36, '\x8dc4a8052c4a0740da243c43b4b63d737187fb23fa18b09145b4748f20f8a9d1');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 37, '\x3be802dcedb249119a891ba54827bb9b641ff8d1827c91296eb7c020567c9c3a');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 38, '\x74a22b7742b01b663f8ca55deea825e9184f1d69ec4d02e0b51797d3a915c31b');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 39, '\x91dddfa9ae88c76177916d042dce9596cbf38a994d8e5277493b8555fd07dcc1');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 40, '\x4803f84d61c191b7da64976f16a4f1e9a19df544aa3dc38951da210fb68b6d97');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 41, '\x627900c8eb417f746dffa9de6cba7d9a030bb1236c6fd506caad7b90afc16b82');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 42, '\x7b320861d9ba11ca23fac393a6d5c6f664b51346180d2382becf563fa5928adc');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 43, '\xd225204d3a54bb1bc171e248bdb67ea5669a1175c7e7c9f1701b24e72a003d6d');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 44, '\xfec32c4872843c2520e5884819638e7649bd2e74aa1e611548c8b0c8183de243');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 45, '\xc1092bb41b3788721e788e99a3247d8440a8c6fdb72ec0df92e1378613025fa0');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 46, '\x9a9a84a49494d183e1f683e5410cb7eb5ce9932d1814b9f7bf1f0d6a0c127a47');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 47, '\x8367545c2517d40bc062a0b2d17e5fb895acab598b2c324c10afb52ab195a68f');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 48, '\x63dcd44cba3dac1f3bcc44522aa833c80f3adc943b96a591c42249336ae61089');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 49, '\x65d68dec531e807fc3868d9307c25d0915378c9e3717b84982affc38d1b57e8c');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 50, '\x5e53d6b4e33401afaaf347acf5bf93b868d242f6f63786e287c2702e5ee457b5');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 51, '\xeaab1febd4ca9a0ef097ae4b66ee9e88bce836f1bdc750e7c00306d1d26a0f28');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 52, '\x80f7cd2ed1f15289cb7126b8522fe07846684708054d9751ad8bf7bd3b09df17');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 53, '\x233e4dfa929eab2b1d019e88d092344edf21087ffb3324e0f78ba722dc1e31dd');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 54, '\x309523a02e167f3be1d7123fe46e92957c3b50c35eac945f0bdf65844f01edb8');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 55, '\x935c8c9b2f49e6c482b49b11ffdc7d939ed6fefde946d549335a568f7a2a3c69');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 56, '\xcdbfa8d885b1fa95634454141200094102e1555a6e1f0cf3d1b35c7434f01498');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 57, '\x30c159829ee81af1bfe73e9fbc4c0f5052e9653fadbdc62e2e2355805aa1cd4d');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 58, '\x3f51f1ceaf0aa587c5e73d863819e9caf9cf0864000e6dff32002a24abd10ef0');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 59, '\x5c20e0fa1d91341c77bb4a882a852d59341731b9e6217370e6d800c96392d72e');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 60, '\x41759747d048b2a2729c7de97399a6420dd1c46eb62eb97405af67f2f65863da');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 61, '\x23a43ff5cbe36dfa461ad1cc4ed8ec5230d436bae9d3af6c6b9a74f81d20a7d4');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 62, '\xfa4756dd285a77f9c0826399f3a39b7cc6820d3a61e1856716ef595ca001ced7');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 63, '\xcf6c8a7c3c6b75df78528a0ab81b197d74f9e824289adde7a9ba3126f0ae1794');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 64, '\x6307730bd5ca7b4958d25d45cc68eded936ee40f84077be5647787d2269e093a');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 65, '\xa80b3004e926f9aa5005091b9b6889ea5174c977fad558bbb6ecea45ef31096a');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 66, '\x69b5c1fbbb8e4c3ff125c9a1f16e8366aef8c45184f51853d4e07dcd71295223');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 67, '\x330320e29dbb922981b57604b696e7ba93f8993714d09eb520943880b40a1e64');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 68, '\x2eb40c479954ec4d1812836c3fefcef3c886e32911928088b17080f372e6591e');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 69, '\xb78ef4010ef1196f339bf3a613961396fea592204a96943c4f016f16af905454');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 70, '\xf5e9f2507c7744b794eaad43ec24312a621cba1f5ac1c4e4b37d0d06b0bf70c3');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 71, '\x5e09f8e3bb23ac417cc449331182d8df179eaa4169b00e1f3ff11a1b8b39964c');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 72, '\x9c993dd56ef066824f3bb498702c053a1f0d232938b55016f25749c50b7b8cff');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 73, '\x61e225be96f37ed2c6740b129c80b4bc3ee8ce83bf7781a81ea2b732d5a662b7');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 74, '\x174e8ec688cf6d48c6709a7a7710e7996d653c6a367535ae454e7f0ec9ee20a6');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 75, '\xdc61c2249b106a5ee0c27faa63f200247696044e76269ddec10ad3b401a6975b');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 76, '\xcea98a08a53c9078bcbb6a3fb293e83b4d47e2e7c24e27b6cb3a166ff25f3099');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 77, '\xbdbcb26f46c9c960f84be461337da95bdf28eeb348e6dacce2ee04decb8f2a6c');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 78, '\x98b93b41489b12d000e934a81927128709f884988b6877c7299053d18f5d7720');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 79, '\x1ca29d27a307367a71ce9aedb5269a34078bdac2f640bff2318ca83e0fbb1eb3');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 80, '\x736012db8d900efbe2c75a9a4e805eb8db867fc13b5abd62041b1ec1afb27e61');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 81, '\x35bcc6e8189f57163f1af8d6938e6627bcaf70e117cc4714387a8365dc34008d');
INSERT INTO refold.payload_keys_10 VALUES ('compacted', 82, '\x531b0493a6ce5c63f06b34b7257c7aced6177e7c06aa1b8f66b83dd1d5b671c5');
INSERT INTO refold.payload_keys_10 VALUES ('对话 2', 1, '\x58fc21d89ec7969f6fd18cdc9fcc8002977cfbf6e756336fbd5ecae686c56b52');
INSERT INTO refold.payload_keys_10 VALUES ('对话 2', 2, '\xd93fdf26ce9939e62c8cff760a9712e4399d3387b5cbd57c39cfddfc4653162e');
INSERT INTO refold.payload_keys_10 VALUES ('对话 2', 3, '\x42c86efb81a9767dca950831f2508cee0f1a91bc7fca7ce51764f098cc70a61b');
INSERT INTO refold.payload_keys_10 VALUES ('对话 2', 4, '\x829950cecc36bee9059c3b38b8fd23d136db1c1a9448553e522eae7022156e2e');
INSERT INTO refold.payload_keys_10 VALUES ('对话 2', 5, '\xa2e71fb8c85b18b119e87ac109b823e2bc7739546a721ff63d0abf0763f7a4c3');


--
-- Data for Name: payload_keys_11; Type: TABLE DATA; Schema: refold; Owner: -
--



--
-- Data for Name: payload_keys_12; Type: TABLE DATA; Schema: refold; Owner: -
--



--
-- Data for Name: payload_keys_13; Type: TABLE DATA; Schema: refold; Owner: -
--



--
-- Data for Name: payload_keys_14; Type: TABLE DATA; Schema: refold; Owner: -
--



--
-- Data for Name: payload_keys_15; Type: TABLE DATA; Schema: refold; Owner: -
--



--
-- Data for Name: pending_erasures; Type: TABLE DATA; Schema: refold; Owner: -
--



--
-- Data for Name: schema_versions; Type: TABLE DATA; Schema: refold; Owner: -
--

INSERT INTO refold.schema_versions VALUES (1, 1, '2026-11-27 07:33:49.113594+00');


--
-- Data for Name: stored_events; Type: TABLE DATA; Schema: refold; Owner: -
--

INSERT INTO refold.stored_events VALUES (1, 'compacted', 1, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30312e3030303030305a202a203732633665326266336663326639333561316534383462316434326463383266653162313639653033326637626362393537306338303438633338616665373520303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030300ac7ddf38e5ceec8583850d3a7834936cfbd772765214917a680dcfcde179f8655c0097a8aa47706a448e11b45d0b82375c00fca26db04fc72cd2d211d757a92f39ba3e9671698d0184dbe526f29df4dc4ac0833e65f0330f9e01e2397e9b2bda285bad380259b9faf830dbe86d9dc1eb6ce9fc79208b6940bc3e27697d82bcfa363d8ea9b30b73be4660a8ad87ab0da7704896f35abf46220e6926990ca3338a248a009');
INSERT INTO refold.stored_events VALUES (2, 'compacted', 2, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30312e3030303030305a202a203665643238333131626565396632643634646265616535623137303935643364636262396566643136323339313063623561336363363433313766623033666620643266336332326465306533343336663336313664376238366263353063373166386439363934326237646231366235303461333436353461326236363164650a8bd2f5601734e0bf1bb6fd995a1c88392105cae0f47c833aa5f713f2f9b1952b958320ada7b44a162cf8f1f4cecaeca993a1d726b0b863c5633e25a230aff7109307182aaf8f041816c056839c9b39a43111a9dcec04a872ef50e3c8f3f67c57481b27f2e636b4982f045ee6d0bd60327a975c070e7ca4cd7a99e95e957b6ef9463400cd3faa44fa48ebdf1c94f7c513e8726b3be8890e87ad069cfe66233ff500af81dc287b31827204b8a8b6983caf66abf5f3bca92ef4384b2bf6b35eb7d8ec6b3926f3992a6e539169c25fcd358ec819aee46e4fd34a1496f8d7b218bec37f4fea699ca961f27065379fdfb3fb26d27c67aa041a33cd450672e39aff9d6b40b7e341a68c27eb4402b7e0805ef4d671b9729f2a765c07521e51981c2791d815e49ca578cb99960b8510279fc0c77e660079d9789a49b693710dbe2e678fee61e7f028ce3d88ce9f8d7a9c5193332f47fca6f8c45528438122f6f7aa161e4dafe6bd405a6156f4355e9305179ef0519f1870ab1ab41acc0d2294865d91f2ef96987a449ed2ff8400d90280e9fe22bdbd606c02326d6d7410e2397658eaba6594c227b98a99f109d283a284b716f6f5e1b57fcb08bb1ed77e12b9e835288a0237a9a92c024dbc');
INSERT INTO refold.stored_events VALUES (3, 'compacted', 3, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30312e3030303030305a202a203365623137343335643161653239656638613538353631396666323364663631623762303833326638336336393635663039363861656261303639623865613820303736623366363735623765386434613236393834353837656165646166303735623231663633363132396337653766303638353065626337353230353139380a4af102eb2d34b97ae1a8d6282e277a29ada36869ef6c528a7307157245313b38f6f80c7ee1255f89de3fc81cd2b26f5556bca6e8477d015ec063bb491650ba2ca7642ae653fc71da694c77e3e5b07c10e0c0968d586a1ec26d76bf4f111a9e500066201ffed2cf5c10fe4aecf212c8664a04ee1f37842389ddff89c32a3fe20de1a323ee646930ec36765976981ae9b7b4b46e64e5b168278ed3d0995d15c4ad4c7dc22f43352a45fe59fb1523e4dbf91f680055b6f0060db0802b5d679942d5192b5d68af3664d197eb5e35b8628e2b936e3904c1593ad36160199d55ac5a6761a92f1f98e592b5387123478e76c840aceb65305624d0b817d79d1541336bf01bbb1cd9e053fd6e641ced6e939ba72f9a84608673a507a63434ec224f0d31fe8298c98e9d93ce9ec0937ea6afe0b3f633fd107da47c6000fe6592edaf0a42021befa99fa1c85a2910c8f85c82e455e93df60fd6f7518d30e4af83cf28015e3f839308267e09755f74e3b074ba1ee25c34dd55aa019f05a4d0d3d6ab5742347947dd570b24f6b4132c5108ccf0bb352562a77c4a5d0cc102472956618ec3c1c951c7da103469f914468dbfbb72733b593c98c329fdd013135ab9932884acbdd9db51083ac52f156e0e60');
INSERT INTO refold.stored_events VALUES (4, 'compacted', 4, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30312e3030303030305a202a203537663039613130366161343037383536346331383166303664376437373838656233646666643462303730663961616139613433376461306636363831666120336663313261663438613435306539393733306637313061306334363431333738373866373838613633366263303835613639366663663436376336623139650a002679faf160f849249dcaff9f94b7a6053c3f0cff71ec8b19d304667c6ea2cab023e5a6a435b7996d2a416a774c88b2c039d114a7c0f58a933ca6bae7bd4f1042445c7f91ec931c8581b47fcadd26e1ade85dfd9ab02f4ec2f387ddd4111c3bee1d531e338a4900bb268d2dc067e89ea93aa8bc18f26c5ff7388f56b524e3c11f0224cabdf75259176d2354ea2922f21c5b939ec3c615bfc07c025321cdaa6dbb8996c6ecf231ab8465f26549fdb0584397f66eda23e15b6266110f1e8ae3a3a8f8628af7dc9734f2a04412a8bb75a4cf9984885db29a698ede815cf44dcf46c74f33c28eb696e6d3a28e01f06a9c5e45f10f1dd5bd3224f714d02eb962b21c4c800c14fcdd3729fa171ec733086692783cc33c81eba7dada6521fade7765538ae0a7137867c785d948587a14ff8d855264ae6d064be6f853e295aa57bf712b03f015451d52b179cf8846d297f20de5f9b30c6082528b4e4b4f4e0ac1b086fb34694d82c2308a226becb2411f7f33a79fde150241b92fa120388fdd3aed2422bd2974aa5a5f286e2b5283e8018e72b54c772b92829794c7704d635b30ca8ae04a151653e9b0744800797e9586430bfdd35fd3ce51376d0834bf9a469cbd98acc619449b183b7a');
INSERT INTO refold.stored_events VALUES (5, 'compacted', 5, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30312e3030303030305a202a203361626630613738376638616530653633653532393465616136396336306161313233373362306536356239633364363933303830356661653235303532363120376264383638343562666461666436303837326338396432366462373061376233656534393463323862333936363464656138306235626133386532623239610af59bde50f7b16724525a18ddbfdc1265da95df98e9afe4b192abcbde571cf9d2a2dca6edbc8bd57ae5d7d0d0e2c4387b3c1c14685ae24a8a57c2f6852bf318f94ada22d3451e1f7ddd29e57d16f7d54db15422531ecbe595af15a1b761937e261b994d97008c6dc754dfc8a64840a44e51fa04f2fccb36ba869abf7508c8c7acb89d2fe65c434fcf4388989703c5b3af99ebae6b858dfba152b4618490aa3ba7e7f95240d66fd3131b0771e9e2dcacb628db1471bfda4dc790a454778013f3ae9d9a0401082427fa4d04798f5cda90b2d0a3fcf08550e75ce84d9ff32d3df7faf6a980a611871997697e8625c6c1cfe30ed15dd5498659c1b25e3055d948b87da524264d6f9ad03c52fb11c5a5622c942fb30263226be6562e1c91ce2d1a88103fc2c354556b0286d46df6ebbe94531258c7138ba39d1d35e6f15f853392f75c1f32571fed5e487a385b72704c21741438a538342c49121f3768574568456a9eb2aa07eb990dd9f7b67db27da499d2afbb445073cd359eddd0efb97d50e3a14ffb4bea32df1a8158933479abcf934b319f75837c81edc0dfdd5ed7d4bd72d2abf79b976e61fdc4b95791124bbc305f05ba9b773c3f5af84da918b2d97feabb0adabb8ae4dec6a09d4098');
INSERT INTO refold.stored_events VALUES (6, 'compacted', 6, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30312e3030303030305a202a203638306235373261653535323464633637316663623838636532363137633739663439366330346133386338623938366261386333336137613665363362316120346236373762643230343437323933613334623137343436623735343130313930666132666266303765373663643462373866323065383734363133353530640a803559c145a9c4e56e448cff607997123616af47365549031a0d602276cac4944e9385d4a96e121e6e39d71b0a79a9a3d2749482dcd812ecdd313a74b721f7efe69b94cb3528c282710e2cd20690d611bed1cece5dd7d97e8396e04d6406f7bc37362c83cdb0b0222ade2d088913b6940a65ab17dddb25051dea841d5d49c483a92c9a5bba277a6c3d46a407286b57d398936eb9d06d98a455dd27b3c20bab674b189e12680f1dcd2de92003bd77b6f7b928e4caa478c340a674331df3933cf0b2ea2a574f292c784a9420b45bef18e6d3b3287d9b7c379c7d8e6934a69458fce9bc6af82fca526a779c1c3200c709e551c7f760847e77e8f34b0337a144b64674f02ac0a29c6ee264dc9d194d724fa4b04e66efb466e9da07ee0aee514f6a08ed39144b7e7fc597f5e04a09466300aac16919e2da0370ea9dfaf471ddaf1235f408fa2ea532df229ff8e03227530fffa2d9979574c0c61783bc258572255fd6781f6ffff87df841e74ba7934c265c00d99fadfa254455a5d062277aa3d6d8f8ad61bb993cb5acb97ab07ccf7a289f02a673424027177379a4d75c5170c54bf6b05c77d580e0c01a934898353c7cfd5a09a7bc02635369bafe88b1283149d6d8085ecb321505a3');
INSERT INTO refold.stored_events VALUES (7, 'compacted', 7, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30312e3030303030305a202a203437393961373035643731366666656266393538393336316433303965326465373337353437366535356538663130326364376332393933633438616463626420303563623165393230356232353735633161343465626636366239316432613635633633393037363661316330393763303065643131626565366532376435390ad1ecddaa53d991aa289c8243b9fbf524ec034227f9a6564b96eb3fc5d53ef6a85b6a37253ae4d9cc56b6ace5cf090f718d6a84d9d0d1f0432348ff19fe3364d08ec42cd0ca7261bf06a4e7ad3fac4ac1c7743b9c62539f71a6c82f3ce19247b183a0259712bace791b19c000798b23ee04d03e41dd63ef42e20ea890cb3656a6bea274a21e4d43502d68f42b13509318f897b8e1dbfdd455edcf442909e0d1152b84f95386e40aa0380e15238ba4d53c1f8dee88dc175c151d8da0d8ee496f5b34d04ac6cbfc0cd2c5d92c4119c2a1140d458c69de9cf5b14d8240226796e61123b3424cb0dbae532f5fa0e397fac9ea108b30c5da8d1bc967d2fbcb57b5587f740ae3f2ed52ebbc2fdb126ba75cf584bd134bbdbea221e2e10db47c7e734ae3390251e0d102d3c069877c9ca28f68e96abacca5e4cd5792ef33e1f94f20ab48b58a635cdda5584df828d092de5b51935b7ead99f1b1f528d2bb867c52953d7ee72c71ebaa44b46eca6cd295e69626ffd8cfe226519da13105025235ac392fbd76495445cd4bd615a44918599c17073d8945180bdacae9fa148bd7a0b37ad2561954f28525929b25f236292ab6b4cb30bd061d9340a87547db30495924c8ff628b9966489c89814a165a');
INSERT INTO refold.stored_events VALUES (8, 'compacted', 8, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30322e3030303030305a202a206132663833306530343537376339313236663939326562643434623766333565303338303532376234336434343361333234306331336231623637616265646120396464623665656539333430346465373933313137323632643062353730303163333837393436616430633837343930656132393736323034323934383134640a494e58cb3d87559e296bc30457e1f1004166c0c0992ea2e989342cdfef446e75f4b17a28e17157b7acc3d6747de174d936690855c99d57600d2d2c314f569335bffdd4b35b2d7e6786156fce4b4fdb94adf41693434a3caf62d166b03eb0b3243012b4c3b04f332fc55b65a797d2c676d7454defe8791afbd43c8870905d813211bab7b3fb05a547bf19f315c97952dfd9f79c5a28a39157ac418960260640d0a352bb5c075fd37bd087072cb94061c998ecc4704990c61c9b04ce11009b160c47f904ed6641fda43e65848e80d9fc272a2ec417bdbcc9625f58a89bcdd5bef9841499606c1a1374f55970abafa606853c72bc29ea6e4bf15f754d12f1876eed62a490269a8b1839e39e435643567ccf28bd38478f111e2e83d00e9cee0d879dfd3a1de782e80dea4bc05ceed4c74eda53722012b8aa06597d3ef829c00c85f05b28de');
INSERT INTO refold.stored_events VALUES (9, 'compacted', 9, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30332e3030303030305a202a206161316133386162646131333862613263363032633834356665326331386634363932636636666365336232636565373263346230316432643135616238636620383431373530363231383938316466666566616439383130663335326430616664356537373036626138613361313131363363663833346264346134313435620aea93f7f69bc2305a6cb7e1da9f9d23a8a8106186bcd72f2182234d3adbff17419978fb499375d3453c128e2a79930ddfa800eaa490c8862107a5ce84b718cbe898c97225ee8cad545eeb935f001e43e7fe464cdb46996244a1fc4917922de3747c4351c570c22739d55e1112eb5428924ca77b6ecb04c2ad6fbf0cb55080267050f796cfeac9161a1adf0e1ce9b0c423388b44790ea9b8782e1051b105784f87e109db6d514a2ffc6a4ed5ad8fa8c29337a5c42c9c6977e70a8f918d02a68419503529f5b3e86b867dbdc09c3e50b0ed697f9673e949b862e1177ecc87fe102834584c408088a87589acdee2ef8e806fd2f5b7c0790681a89209ac4799b33bfe6fce34196cb4393037c599b2fab1f71a844ea95dac23fe5c7d3e03f11503e2cab1e170daebede1652a9a2e1b25312a4557f05a077faa18dc4270ed845301356812744f1baa44b5775bfc53b6604c51983fddaca111c4f9fc2a8b71cfad472b9f8223141d8d2923f479e327b0381748146e3287fc3dccbf7adfb7a6ddff32ba6d5b1fc59f762badabb01513aa0ebedf57570470e540807542960cc90c90d124a5542cd822df3a10d1906c1abe8791f5590a30c2041d9c99b7f033d09290a919ac5c9ccc1f1494baa57dfbe460eb9e7c42d2184355b24d392d74a66699566d6ae716b9540d5ff97d1d652bdad306a047431518d3a10c2e7b37b044be017adba80cfdcd1ac618fa58b49c3c7e3418d55ce4eab231beb75254f8cdf72ad099181ebcf09f6628ae6d684833d13a3c3b643fcef1232daf7809822caff1c11055d36bb8432d947054c7a018de08034ede193953a512387da6620168ac4849281c04afcba41d6d25a21c396b9635c205d0b0dd6ed692097b406d1fe50560446ff871ad179f583df21964cf0a1a4499651e22be419c0775c44de8107ffc0b195f27d5467ad5bbac18091794ef1223ba66eab38997f4d0aef013b8c3c9065aee135cf396288975ba92b7ff8a26a6fa8b706139a6000846c1a263be88352d9d46aebc50eb3b5236484b81752d3797db2480efbc8ae19a89723aa81f109f1262efe51f5ad4417a30f41ef352a430c119dc76cf26b6880681a016df39e67db05cbfd2fb65faa5ee80c03920ea1701d0bb98d2e5077277cc95985597317df60f75da2ebe9a478558d72e7c54a57697a476e1454177ce46c3961d518bc5626dfa3383f93d423773cc67a5140bf2f8d9b45bc3e641efe6b813bff1b7a6f5e2b617cb4220f1dd5ff46eb686630652dd9b4a5a3567c3b4fa6a6c1a90f26273a9c8e7912c9cb6c240e4372b204c864cd08ffe7b36a048ffdaa18fa447dcce21a7d975356affff0c093c6dc9b32a2771f73c87b7f6bbc11deadd702777605ea4444027b832b98c73f58a8c4f51f45049910b8b4c808a652e35c7d398dcd4806252871be2a63e656423053f1df4ce2b67d1756d28b42dbf0c486cf04387d3c91df39c017648947ba19f3a2dec5023ea1f71ca974059604e938c8e8fcf208b1d5a52db0aadf3fcad3a774501f77fc16f734e61d27baba3f8a2610de9ff84a8d15e9a3c3084d4ec9e520e1e14f978839e9f28f9c98b87c2894f96de683539e49e2120516078684c743fc1e9403690d6b7b6c8d61326f23e17e4ea3574f7c3016560b7083f5f1603f04d4e3983446ec8bcbce7609ef37cfd14ebf834ffc27421cc9677cd632c86547c465ac577861b9c6b68ed01a6559cf4aa87096197db1c4dd5f791642efa42b8cdf0303fec9886397eaba29c4014d7a682b527951d838210a271c57ca58b073f3770c8a3bea2760251f42e99e6148e0722d1ed134a18ff7dbec0a33caa3d5438c55c9522008c427e86612b95644635428e96a96e4fa8ade02e497e1edb5ec2e2ff176045e0fb2835f38b60bff3f4c0e3922c2e274d613f7c5d2762f94add3f596389cd96182f3682548b5c930dc5ae2266320b353176e5f3ea8f4daa8338140425a3a0c10a7e717de8e8841dbe753ad9be26f19a26384ece88b77d88709e4472e9e4e6384b17facef30201bda1fad761e5dfff77d6b3b9390b3e478daa17a29b3efd27f2f9d5f5b21e226c2e4dfea1f9b5aa76337a7a4884976a78ec277277d06e4b8af65b86ba18510a611ded71fd430573b196ef4793ccf19087a0281fb353b92c77e7f9aa6b7a707db48f0b345c661d795a08355103e06514231c5e99ac2ac962bb7e18c8c1f6da1cf4b86a54198e4d66431cfe1e09d107aa03c9af51510da3e31321b1d7778f90bf984dc6c3a0fcbbef117105671442df15937834ecde42f787b7ef19dfcc9da3f6a2d94db8513aa6d61f80fca3ab5ff9d03dfd7f2cc8f1ab47e6883bbfdf3424bf3b5287994c9b9406d5a6114fbd6abb74895e7a949e60de07ae7b5c1069a01c81f6c91470b238a4f6b6151c42ab911bbfbb4d48c12be49eafd8c78a55fe6a048f638e306596c5a8b8467fb8390cac7075feb51f89f0f4d360a6cb22fb2c03d7a9dfcded5a89b500e347181388aa01df5f13e2ea4cb96730cc17e8964149d6c1cccda10e7c9a7ff63f8bbfe933b52a2d36a8f7434c36b1df66279059cf4b07ce3f2ca86fc9aa57aee838207a59a72f451719edbb3c5a43d5bdb8589ff35a054268e9003d8735a0acbf7de1fcce7d74aa7ec983d023ba05cedb1146e32cef6ddb0bcd486df7956e209362a7051a20842834bfea01b92719f8c89d94e98abaf787e32a8e1292c3cfd44f63f28ac9dbef19359d9f665366e5edf0cd6a5f29641f44201b4b5ee70bce4b1d84bf392ca2f7fe002b27b59dae987d4ad9a747418289fdd294365443ad01ee0f9d7bb0539a72e969fb94c818b5bae667b179aba76a789b9687e1dad858fc7c993a0f17dc32a02f1381099daf27f5bf0d68d828f4ba2f8c32fcd1321c3d3a31755744f345f16f7aee600409eaf24f7a465ad2c95251e737d2199792fe609fc91b0f019835833cf7e9df9c77e65e8328ea66869f47dbd9875b9b6423f4bc686475562f5cef96cf7378400576c0b7f2114018283e98b5fd730904c92c0498bed9688490fc52fc10ec39d1f86a9efa5b729268b652269776174b52d2337177396734375279e791e859be27c15df4ef958c8f7d77b3742bd3bd02f715ec2631bac3aceb7edad77f8702b812c184fc9d1fabafc3f0c86d22c576afaebf8975e40c10fdb99161b2d404f331a163903a2a948ac559aa02c057eafb8bca6013b702e5905f7b108c31c588f939fd4df8ac6bbe6c4f3ef2d1c2f264785f3f946feef5135bc106337e3a82c790629dfec746e9ee1b864502dde87d36188169dc2328721f8b401e2316859ee2f4bdeb5bc437baeb7ca248c8f743717231a7b941ddccf73b5416fc4973d4d340d334b10883bdd7643febcbbf499ac6c30bde0ded75f8f7fcf48bd524503becfa6629daf9556563ade693d24f494ce2f830a9e535c691de79a17e2666289fcc34ea2c3d72cc50299b6f4eb7a7095e343acd324ac1df6848606f030a8a0ac7285d13dbafd4bfbe3591e5bdc52c286108293fe9b7333bb1bfbf3ec2f1b205b1bcd320f7cb5e5733262379c584039fdea15887d6a7c53e123c2b9b406fcea1a2ec34eb5d2c87c2f2480addf272f68c1ae317a78a21161bc730bbd1669cdcd19b2f9a69f9ed0c95da43cbc1da642bb8a15c97fbae0c69732035130aa09adc76401cb10571e41b9999e66d0b5c4a9140a089c2d890d6b00b2c2ca052be14aa38a49d82a785fb163b3b90e842cc62f4ee866e4114d3b3a673e43c1c71ea178fc72e90b4bf71c6b4538752014cc2a5d152d36e74a209aedd74b9160766b3f892d44e4c1642990964b19838296a3dea64507f11cc059ff3d9ddac23a87153159e47bf8cf895cdac51322bb8ca1a1fbe7eb6026e1e3a1e5ac45e0c712b5e703e941433e59c77e75841a5ce361ea6bfd19f939bb5bbd33be2b3f9b3ed5fb15a3cfbff69f9c0af7776904c656cd08ecff930f054567ded4322fa979738b06cc7f88825f2e428d4288c7dc1bd7d7ffa2a33cd07a10e38fc2830151da6a58ec305b03b4ac961bd5f7cd98d39984f0dce7053388faeaafe824d705dff8d75a3b08af3b62480544d8b292f7416909ab27da14d3228556283909a1e749858b819cca0ad8baf3c9eabc41ccc9b487427ed160af9650522f03d9d4a3456961075893431572b4e2995e2c66e0ad765944762c4608127d8035b5eebf239497e1cee29ee6873b90f3571f6a9f834dc94846768334ef375dd3419b47d0ad3c2606dffb2584a8911bb98ff7f572061d712e0ec5f4a9048cad4a885de27bc91508ca5faa72fb02a6b9185cfc575bb899b820194a9de86105713e46c4ade842efc78e8566b29dd21b70b659f9996585dea1b5a3be12fd4eb107b065848db4e54d7a6ac03cddd76ebfba3a96dc72bdc98ef320734b83b915929bf95a96bce4b9d78097c902f9bcc109b9afafe6f2a430e731163e285d088aea9fd0d86eb447cec13b0d16b871b9abbc7a913d7e2b8ec1458dd3c497a4707a52ee93056d245f8991bf4c3ea946c19bc9498ad365188d337ed7a56fbe9fb0910b25a9dfa0b0f81a96c448f20de057836c9e16e6e1499ecf5cdc4529b6e45f762c6422c1042e791fc13c9fc0033e1adb825ebd91790eefd5da01b9e0a8db708fa0fa17b7cf1f63d0a33049303c29f421a0ad28d6c21afe7a3eda95a20bbc46d9314ef9eaa4852c9bdbe43924878a41c2c1c1db055ba398cd7383c2ac2dd8de8a63846743261a1a19f10ffe0b77f25ad0980e2a7da6e498c2eab5cc15a258861229144ab19df45107a0a772aa26ceb46c944a5cd599bbf693741fd4c0f1516e1f2e79a3a3620a35a4b7dadd55d48358e9ea66875338196de65ff76d4d2a465408eab5f8b156460e9ec6fd8fd30e6d52b0fe4037f7548c3cc739901faa622e323c2cca81508005b26d2965be521b993504998522fe0e7ee888e44d27fb521f7789ca62d031696c5e5f46b8aceb1366f87191447f72ee7c317f131da0bbe801c0840689647291152e3c9f76da57d20de00588d4cb0453a51c74067ef2df02c52ea84dfc98b7d697262310fc06d697ade35f60f43e8d263fa78a764479ff1105582ef9237278a5eb569f927314d8d2030bf4c57f6568abc5462734aea620c8b54cd32606c5c1fe722896033de98e8b4e1d6a003b7548e85d3ef96ee963c0fe0d7548f099ef87974e730524893044a796f238e48e630b821bb8ba35e1f070628f582b97e6c720eccdddc9c5ce2a6744d481085f19d31e56f7d2620b641c0f2ce52ee4ea23f78c8407b7ccff59ed7ee65d4deabca8b84da1e3618d5b2465aa3a240940c0910d00f8f2d7759bd600c9e69c5423579cb7bfe097113165b1f75ee18052d4045b778e6d7f15b239f21618adb5b6c961715fae427f948e12fda05ca6a6b3fa395f0d685b50a140c20171befb4923b8c190683d33501e89f227c9c71b2f49022c1a940439606de8f125e8503feb17bf4e107229194ac1ebcd0503294926276033c3c57e85bca8dfd51b25f9186ba5008488a2682e82c8f0fdbea5f3e0a4a22b673ce131c6d10c78fd8bd670b165c61701a6925b10b9819480ea389fcc51d304ca326e03ce9d66d021036a31ca6d839f24802523258527e8703ae5df841a25db0297ae628056f60a9a7196f5867598d7e4fd069b1b035d5d96b7122e3f6c3b92be4540778986554794d97e1ff21edf05dd7c546b4dcf606bfc3b738fd0772e0f940bfab30013caa83e525028a6a968824c6946813a0620ae9caa99f1023df4318aa0c935c6219576aa56e1587d86fc9ad44ceba76e22810075456998143821a59ae835db6649046ec39e0b299814f19b9fa9d613daf407d3b63632572d374c926510f031dbe5164a04c00cb0f32d5de523dcd5423fb622d9f887fe2662aefc6ae7b9f8cfd607eb872d47054ce8b1100708c5f7a85afe07506df4dd3aef55c7efbf1695dd7328ec1f6e4651d2beb2027f71a2be2dd36f98d675aa53799baeb2182c3f5515a794fab9b549a7529916c331d0480e13c47f36f82c1ef333cda02424ba5b991bdf3dcf805fb6ad84e88a8aa7073c95ff056af30097c94098ff7083c04b3a0f1063476be2c669ab236e0b850d94c5e6d91e71da5d6c65c65cb758c5ed37640a301cb1049ed918789051309d44f2fa61748dca0c2a1dbfa06eeb8c20c4df222de21435e4ae207ebd3212f2d20b06766a86b8f41ecfc6a8d9dd75e7b59a89efc47632bcf26dd1bd23e8f75a4a34e2690e830da3cf052f13c3e592e3685fcd2f21f323a88e283364742f927fe0551b13fd377f99eca86a010f541a28a98dba0d3a89ef18eabd75d0a8d46a7c657cb987024b4090d3d3b9d4cc1b140962b27eddc16335ac0ddfeee88c7c14caacd8a5eb31aa9ca4424357db58ed79607f77ba95f96e518565f5b3347f45ac102053fec29e83bac0dcf7f374d4ce9f33c1fd1cbca4d294cfa4381fa1c3048947eed7223d842058127568c497be250a5a1433aa5b21ac4d1ab06d7d76a0436a182be4356a45570920ef6d6de520acbe4d1dfd3e110f1bd45fe3030b1130795db3c2755b6e7d7f366df16243e1dd0994e44240bb8fbc5f0f6d0e32f802ecac5cdef67e51f2532a7cb80d3c4ff7c9b72ede004e3526d0e689e88a26a99629e06ce53d75289af46e6e366abe9e65782ce974bd51565a6fa11978e1a2fa543d87cc04453611823779d9a59be89e8901aaf4aa1a5b092182bcdee5cfab415fe6b287a62af27f5103b647858568f9a4bfc485cadc1fac78b1c44506a002f97849326e15ecde40a6d0f6fb1acdc10368d15b5d58b7d38c6f08fca0f058b9df8102dc1a4d5918db0547ae363cc3af2f68d182379218366ddabd5a7bd416ebe14d64bac5263ca3382a7d1caba703c230ee73bde22b11a6bde613a77ec814e26dc7b2c6413484fec42d6917696744667e2a7a3ac77380de782545f8b474e0394e385bf328c7ca72d4716f3452f33551fe0da86d6e065e1e9c3bb5b376d01d64e9ad8df96993f3485e636db123d4ab148a8aff04cd121a959a49adf936ff7bf1b4b3f27a33ba632946872c6b3ead282fb9cf8be01eb9052b2f32bce55d12c878f9f076ac85f0713d146bbf640252f5800ba051457f31c054daf7d4f3a7cdef96a85a5b7d8ab850d685437c13933761d84c5078be4d20e305943fea67b19231323fd0ac02f0b86784c0c01d2a5632e7dd7b050a8224ab78fa7ad61ccd23cbe394189daa7d70a1905935f3707ee5969a506024e3f4ec8db9a238904299d3b14606905fc8b944da8eff40e3caa924600ae383961554cf78bd4e75bdd79dc7e6571777e00a9733b0392db4e735358b255f1882d4b34fb534c8d1407f0d24c9bfd6abe58aba2bbd78df52142a9d46b01ef05fe2987eda416cb30c5c1172b98fbae1acd0ff7fa8b591f87178ee798775c1d4940807912b8dee20163c950f6cd922ed2f8f66436ab11458f7b6b17a97d8d43ece116ed54af862909b696971fbabd4c9365ee4d1a4445ed7624315d0096ff67b023088863ab02bf76dce392e120e0abaa792a5ff73db902d9d63decb9312b153f0de4b33b72a10d6b311abe007712b412212b14d08d744cb205ca3dba7c6bc96467f477f26325d390a8852490c2e1a973c1253d61f991461806c187ec99766a710906b73b73159bbe08672f4eeb0b42929bc7e2bed543d84b67265dc5b9cb97c52129334ce0641640f702b9f32d8a708a777347b6e649352ba4932bd86ba24d1e983e55c57c5caf2ad58e439fa9b1903d926ab0d9a4877017b8fd4a42f8031942d65147dada7f017099f107c0a08f58b384dc74e0742d9d531a31cbb96bafe633e00d577cffed5202364ead258e07e71c65a825e1ca26769a486c896833981dc78ce5a7fd13afa6da9a6585b545760d68b76c679f5586739f0ee08ecfaa32ab56441d19205cf914d912c76a4b002998429c7842ef38eeadf656a458587f4ec21ce5a0c214b5cdc223bfebecd10111292675996c84d9b72ebe9cc36e8701723c6302a85449c9fc549bacab46acf6f654dc2e2815c2de3a827330e259c3937622166aac46c6916e1853ad79c3e824dbf83d47c824d80fde3f4f0ca79fdee73cd83a4f2d45dd60d8688a75971c10468257ddfd78f8f99af9e9515c582b7dcd4933f500b9a6dd4f836fc5ec7a7bbc4afa0ef5a8aa98676529dbec352e03dc9d16f4b00c96089854cbf338a27d8f3886a4a6db004ab7d2ccca1a17e42a2ea5ea19af184457c265f131924e6374f3ac97323e66fff68f84ea079c021f3870a2a9fb844e8e96c449a61f6e77dc7e562f7db47e99538edfed3e1c5be644ce878fec445759480e1478fa011957a68e9af5a87a62caebf778bc46f1be753b7a45c502c7f6ad1493c7b1b21a4b6c9dd8071b21982862ef07042205ed64e74cca128965fd47c194dc2e77cfb4c194b11b046f3e1eab034862a8b61528e546df26b9b7310886d7311ce212ac91c5bc76088f49569bc999edf398bd4a4dc26e0b83efdd5c992c17abb1cf5de4c464cdc62b0a745cc070ade4dcd32b295459cc59f2a9c28f3c017b6442e6973f769705a18e36844a71cb84111c86294a6ff676b700635b463a8716b1030a23a3f658288ad36589faf1da814115cb72079f82b69f7334852cdb9d89f3c571be5553580d0560b982915378be80b749eec15b3ef34e24f0676b5208d903d7c8ff61bcec59b77b4ff2f8eb2ef4a35937bf79bca01fe8c05461b9fbcefeafcfda1d0a8f8fbabea6c9fc0740b4c743aa26eba3a2107e7e94884f2f5002557eacc03c62cf04eb9ba4fddbf4a7b16d26b70a742017fe88ea38bf840224cc8216bea1aae6e6e204fadc215f08cbb5ebe4783026ef79d6f4f7d41ac6e136a5c8ecce588bcea19fddb4f251e238fd5b588130391704ebf0c7aae43dad89d7ae16e1b0fcb75e9fddd6239b1a67d4a47fabf7321ca386c79b1bdd1f30b68158a044c12053267e8b6371d3b3e42209b6fae05f71b53ff09e27ae40435b81164011242120d8b9e5e710dbf74655016264dc2c19312107437f914ad1d442a1d66a3744590b7f24b2736e4c2d597a2d7d8b01d81134a29bed40b6c424fe8a559b11db8bc4d9a7023b6e2d01f4980ab54abc0e28dab1c67d14e929e24f76fe212364e7819945ffb55e25482429b17dd33e5f8b7b6d03fd9137c0896e1efd58828f0ad87dc184f0657bd8ec808f0b25074486e612ad14916f5580cb8e85062ec0c492de0403b7f8f4669639b75be967c916c8ca4a5a4e81061a4171bdeef539241171dc69822e46f87ea65d7bc8ed9922a294f7bbb56de70a32584371a3046483c8e7b92620197fc1f313b19ec0d391624d12b4f0cb0bf03b53bb56ddb5c3dcfb49d2b36051622b523910c30815b1c4f69531a0aa4ab23642657701b1cdb556b1bba3855934a60b9f4f5d9bbe6dd582e88504ab37dbaeb747ed7503cd35f0e7cb104446db5608f2b5366dbee17fc7ee54c071ff91be240dab41d1fdf0ca3d22d03512a51667daee25f290396069c8c609cf90fccc531ff0b3e2ccdd404acb851a85d09038b005bb91704dde29fc75d0a3a8151e6db58edddf2a75ec1f26192c35b3d227f2e2786eea94a721920ccf3152666c43258af1bce4bf6e7582b6ecdabdfd4ea7d969da5218107d37bc58c278db0f342c09ee8684d80dfc11f41115ce51ea25b2f446d02609037c8d968fcd761482c51a41fed2aa6fef183edd67a70fd4bdb3a937461fd213105620f0f107b2f9d8795658159bf1f0eadcba60b5cba596c7743314e1a60e038e5ee6e892dbcc61ce6ba90e8df69e85d8bb0a39094c3edfc72ae219375c34b36e83e0c791e9c5ca7211a5f0feb9c52eac887002a3f65dd9018c8fa13ab1d3b2bd7565f3084ec14cad1ef90e2c343ad5b13b52651c29c506a603ee6cea2e046f3fec0b00092f1f71e3767b12768ae69c4221b2da5790114a0e2020d77b9098d24cb7e3a04c2393d1e746e65f33959ffe7938128fab44d7e4fb62409dea064d7f7eb75d06fe8a80d9887eddb30bf8a419d347e5d572d3d2959d9fd11a5d31ad2f486e8002d2dfdaf86e199d79edcdd4850a194197a8fbfea7ddc573eca6e255195085306ff667ca4efea00caf1731e345fc36acc9b51ee22f1dbf129d1ad9bc7556d0b4f368dce3f64975b536df0a9728f84568fa821a132eac858ab3d8a35e32d8a3cdb2ee410ed39140b63a4a861201667a37e64b659d351780e8ba73e2dda478d493f9786dfe84630a847e4e7d3f1ee8be4230d748acbdcd2fdaf0ae19bb7e46498e55e2618adc1cfcd0ac5b0dcab57b6891835d0e7362877bedd0b1034a16e98bf84c4422a67eebf557c9385215530e9794738d145f44228d6d8964484a9cb6cb522cd06992f35d16743dbcb88ee7c44affbb946938255c6aeb4b401ab4d8953aef971ca3acc5a8c8c58b21db8a42fb8580213f42be8b46e94ec6c0efe6d50d05ca37555bb7d045a49fcb6bbfaaf355a3c3c74e341defe2aaa43e844b55cafccfe790c7a7af4c97ee2ced11c310010de01d10deac5282bd55374d763a961c3cc4087dc047b7b808a9632577a12e0800cbc905e9460f35173041ddabfbb35557bf31970e3fa6a43f79a751734f003d2fb440a0733dfade015a55c8db4cc497be091aef5df59616ae05456fcb6d69b11c84d641ab7dc74cc7cb767f22c3ca6b980a006fd2f1ff1dcdd827a4049f660a13b3ecf9d7a00f53a43fc51e6d870630247edad7ea3172f1f0ae92b43f19aefd4e366b140d55c000657c36f82b55d8a21643dee0d93c732cd1715abc72b25b1689c0d1522268e4e5c4473602abcec78054f7fa436822325d8224ad504fe53caccc85404712352ea3f5a350cd0a9af8626e837c0d843735ee802724738057d51601ca77a97a8704e5a1269ba1a9ed16367405553df91df739a28105f55aed2191f6c649d22dff4968eb63712f7602e8f5ca1dda9dc414f990044166d51aeac7915a18f8dad2f460ab67ecb05a06ec7739a6d397783c6fe2c2c21e619ce8fca6724a2b3a7c9d4522f8b07c3c6097e80dad2146f807e99110607e6901958f67103ee1f4b43dde5f7b85786742969083392e619a75f810f288f418e08a74a27a28a3c8d19af08a3874e016163ade206750244a4b84b3e04a2155113920bc8c9e6d5134b59dadeac670f0e908d9e651570a566cfab38d0c2d68029d1a319cf669666fd535b9d62f55b275ad76ab94dff7818b7d9ced94c7599a5f0df7b0868781576b315eb9be6d121e1b51b054076a901f25730f1dd15702d566041f3d7fd6fd8c4e2b1bce302a4853bd4195b3dd81eb45c143bedf3641b613ad7993e426beabb6323c8e75b9af926012e37b166c230f0c62f0e6a4fb60b9737fa219814a99228321cadd62f725f8a4fba80caa57a2df9ae92adfd30be4a9cdf2c18a29fef1ec9b3b3843b8fb17bca62d2cdaacefac8f9bf3c8fed83993fb6ab56786dbc786dc0b01fc33821d64cccc1a0eca1ca2746e55c3146f1b6c7d13581334336db0cb8d8d3ee591b7de2d094f570d93cb79d06e6db1aad35832deffa6698f5f542b5f28327571e859c24b35d4e61725b862e4e7e4e061321d75f2a9b20b85431e480cd9c12789af8c32e54fb03da5f911516f23f2b6e0766b5e1aa34e1207d9b6daf17944699f11d92f1edb4705e5ae82bbafa0205b3901669dbe2f4ad731abe376e18d767964638bb9c886b14d3e35b50dd0f761911b63d9eecf55b0102ab96a339e938e7f979106bbafd54e63bd3c731a57e4e2d4b81e5e7dee4833f113efd73843c66b674670390b5c9bb2d77a9635228d67e72c38a1f5cb0461dedc6f517d989099ef7551c463551267ff50971abc1079a083328a32667220e4a24369539b356c27bcea9767ad38fd2ac2c468150988ee457cbc2f4b68f5328ccac48fb1f59111b97eb8014ffd8d71ed2c27707af28f01760c74c1f2c6441375c919816ebe0c442968a3a7870c7bdb35ea4c49cef70a143b5170e283753297253e91bf876ed5046c2b900cbb21874e41913e8fee606970bd203286accc10c452e3541fd559d63b1cd4a73978c58a81834834af6749b9330fbaf6cb423042d83447cbb9e652912c086eab93c85cef1afffd91fabf21e7ba41397b156d8edf86e4418c9e3d15f15f5536f7c679da71d3a8fed93ff414a3395f7db6e679cf731541a5b639fab65ad2cf5abed0ce486c70a18ec77294ce72c83e442aa8b08438b0b8157929ccddf3c99aa642316b3ea0daf9190d84e2f07d62cf60d8a89263c552c6e29d77c64121f996a8d8a3ba626e3b897b1351d8bab86c522cc3ca1cbec2d9a97a9721856cdf11f856bbb3c8bd4a83bde6f76265a60ef12ee2c12106104af7b37cc76afb4e3e68605565667de57a553a5587603e407373695f0659f229b66fda33fdf0d509f4156871d2ab95827ec0fcb1f12d76db28b8934a8569d5bbdd9aad1a8cb56694f3e202aef59f5d4e3a8d2c080bd79bf0aededa9a2b9e88e296f66f9e23e2d8e6a04353245faef75615503e79213c1b0da65f196f772918245e5161757353cf5d75ee7cab198d0e68c80952ee2f9d0fadf0703f72f1fe5f86b240dee4460202ad1e4a885b5b676bd0ea116035795cd3fe3a1e9b3de89c88a6a820f0eabf5e0569c035a4c96a2192985eea447dc6bade274f41baee10b2cfd6e780586996959289412516689cdfcf8408836d0a95be28b580440a9fd93f48cc678f3924574059aff4d189d86ae494dd9d425b38076116fd47b869a4cece0ba6a4542cd1c73a0bf7f2121dbaafb0650e198769a991e830cb188a1388caa619267880f78e191ab1502426bb5438941506a90f97b0f72a1fc8de2ea0a7a6f6f047f080da1ba61f5e47a4b0108b62c1553c6fd166dfbdd7593c1af166fa83fbb87c252c3dd9696eb154b51e67a9f75e2e085cda5c21c80d64100600f07d1887ad4b33267158a3c209e1c0b0f3d4af5d1f3fae3181c913460e8569cfd3c5bca908314af30bddb082eb77cf8ace399238d9b9b26bde2c45b380c0abd99f8f479494227376bd3796c9a14a77ed486077c9aafc627fd49b90118b4e7660cac02c9167f2022370397ce87bbe230a0d4a2a7f1f88c10cf91d5e248287236f27e2041682b73076bdcb5f1717673e40d0c050b524f98e552354bddc3f1d71e2f93dc3446ccd02043e2a4a1faccd25f9f6b39e94178f39ed79a8bf5c86d53f2af2ec92fbee8f41070006a5e5c5bf48b7d1fb00eea51bf8abdf0ac2c063bc1198d49445766016a866211190976e612a1f2fdeee4b3c80b00e1b871b73a720c0fa1732a2333c96876c57c2187426b79dfeb78fd6ec4b8078aedd1cc03d375e4060594d5f53c3864c0ce254ba0ec6492f51b0afaec6d2f6f88bfef9a154389f1a4d52c059e4703e7a891e25e814e319ceefbd4787858e5123656897602d19f879d9c7efcfde8457cbe9b3ea63f4b6d47c2d0bb0b3bd04e8a041fbc5f64549fbd9453cd7f54b56cedf28ee34450820109cab1b005df737fa140003f174ce82a32fa8ef8e56763d67b2d8d39aa23767d61646c8d15fbc71a945b4d21aa9d344f1c92c44d416dd3020b51ae1e4396d4ccc8e45289646af510bffcfb524496dd11ec3ca7a612fc32248312661c63bc951d0d98c79522f2a6285ecd39fe263ee7be265b9127aa8761b3050a91b4686d37cc13f4bf290d49190af556f523f93b44a080da06e721265a5726fdad56ebbe62670739c379c08934849044fdf42606c245eff553547faacb608a783c4f6edceb92582ca6fdd5918a251183310df7f5f26c723cbcdcafd01cd808729145af90063d3f7dc6f529786b3cc83bc46f329d86ac876be6219a1ca39312067365207bedea5c5e19156cd9b3ceafbb3b8cbb7e02d6ab53c62033f665171d34d20ca6e3bedf6c93f53b3f3fc49afc20a54a9d40a634789d90034f00be5fdbbdc74969585cbe805080c87462f3b29a1124e595f0b86f1932da17d5183a7298bddf97ae6a627f9e8b24931a91bb5900ed60e5639683b5758fdd8709898a4e03a39406fc0526a2c2e154a4f3d6bc3fcae8fdcf1ffd511aa3c26e1dedec4f70e4064fc2c7554b1f1c8f4d8014b15810db18ebf7559c4ece4c1ee0c503672933a3ab28c160a37b700220e0af1d9f84be3790348d8a9e6b4a3adc197c7a77326863039175cc45de6d60524f535813464ae2d630d92ef0bea863b12b7a460a0daf48937516a70d2d2c2b2dd09016009f1c4150a20791afe72805b505c712bead18347d5a11326c9912b2be88a8603f798a922e07f0127d116735cb3cc4f51a28ac9f778073ec48eeab5cade7b45dc5d71243ca341399d876db259f24a83ea2f34ebd60f75013d691baf2f2637182e9b8001c5db0aa34b5146d1f73d5d7170e4f088472085a669698aa62b77c90b6a0e64a26bc36ce48f6ea1920f13de2551a08791709e1b971dfbd481b74315943eeb420976bc90d8b3edc13992b47fd210e50959c4ae722a2534e513f44e396a49835dd74397e3614420af138544a9f546fbd9b47803bf83cb9e2c3cbf22859c59ac6be4f2da37028aee6bfad23ef0c219eb6c2abc14cd0e9593eef5d13559a4e78194c05699373d607adcf438a90f5972845b36e30a5950409055cd9bb65b561f02cc21b29215bc3428abeec58d102a87e62ce2930cf9b6fe9af5a08a9141b19fdd20018eab0015dc0f844d36cb4cd11f77562f23351ac9437249e7414cbfe0c3af2ffeea4dc29eda931bf6387bc940a348c30026ea526dd3698d4b93818779fcbaf014593212a0f7550653faee20858c527902a980e1d7eee517ba31e48260454fae11b72e837a35bd066d31fa46cd886fc2aa2db7571dc41bd68c5cd751e8685c93ac71ba32c94d30a65401bb3fd4f0c2f1323c27f93c38c9834644e1776337ad8da6c80f1bb6f22a0ec2c9caa5dca8892e85e3c941723c625aad007ca7b97b0efc52ec5e4d161d1f381842b7c74b3c1b9b4c3ddba55b72d4efaf4efdea72770d18226304b457f4641e5fec7e22ca2fac81329d9a3499c207862c0400262bc40a557638f8d6d33ec920e4a9d0ff28d0b02495a41734b475c67096f61ab79081d245fc56992dcc66718c625f21611811bffd172b503812d501240276197c33239910c8fe559a2af5a43d50fb242841ae50ec45003814136cc194012a5e13bfbe2b9bedb28a5bea2cb92c5e8ed632f9e2984ae89949b90e0502627dc4f4177bfe80f7f16238cc9f42cf9c9d0e8f6edcc8f340cd112fc8277a83736342d7e8bf36bc3ea4da7efb59d508f32b29ad9958473d713bc2d192cb5a79819497f601a19e1ea44eb0855d603c0a839c6a6ae540146ac330278e248b45c30502af0def7c02744dfff261100606d188e3c2c657b5fdfcd0b76e081b6781f7b19d220ee2a005976abe0b95e9c55575dd7a99c50c04461374cea3d7943935c7ce996584a2103a6d519b44b1aa92151ddf659cb9bdead7843e56e8a56aa0a9c5cb5083f5db1592496e36d5be8acb2882067611186eddc5310762836f47c40106be84118a09a5563967d4986a655c1ecfdc9d9d0f00808c8f9be793d01d3774be92342f3c4df7ad17736a18d617a6b3df3288b597e494f14ab39f5b8b04810dca52f33e6e24d57c02572159e3b5e911fcf4b7f9e0ca2e3c8fc484e2eb171f0462b6b0c0f183f62f41532360fdaf387e1a2f62d5398c8170ac2e9e478be91b1f6bbf18b5e4ac576c6f8df1fa8ec033bbf43d2830a0e6d2cd883fae1b6d9a74fec4a48de5f19e099bcc30d73a660d1a6c6749a3ba7f597d35ef1e8e42895d20b92ac9c59e57c6239b18a145a62c61a75811f01f88949a4ad4850c697a86bbb63574856f90bd1284004de170b3eb52f042ac5366616ab42bd53d7c764b6c4a50a1e6e8766796d29e2b3c25c2d2a010fdb273339c60d1740834b596d2ca7bfd4e02165f1ced78b572acb66734c13b2310f65e4d6b7a53d5ad991580ee7c97fea04dbdd2955320ef7047feb98daed98e30d4aff6ab22756693a1e681a869efac951cc6ff018480e1643456da8f13676a6be7c95e9bf49956fe6e7713e7cf330092f45f62c6bf438c38c962649050e7672c7d778aa672e7627640d990eb748cf6d0bcc730689739459b93ebd9adb4c679af754472ef75f49e6cf96e09612474be414389dd6e3edee87ed71f01491130d8cc697eaca2b388b2f4357af1a0ac3372393a702236628942c7d1f5f1db6dfd527b0bb00275369b7531bdc7153c7be4493841bf2e04d055eed40fcbb8e5625bedb2ac66209cc1e120a327164f2036330a1828de8499702b77fe2bf366712b5fbde80606178aaae61ddff5062dd01c82d0a45fc7d4fbef7af3e75d178ef927f820fb55e1ba4d5d312eb2de7f2586aa66b1d13c728fd29447862e65e1d959ba555e0fa2c2cec34f6544419a7acd86ed4833ec39acb657dc790d2f6dd8e3a993d04d4ad41076da353272037dbc83e6cd84afa370f141d51e5e8620162decafccdec4445bf2da31529da6b33eb35c92429ca9974bc96434216fd5303688ba96f271e6435a0162b5cbfa72aaad978dc577bc2f2260eb7e680f58e5647392867af9f93742500ed2a7f05198d3a7b8c9d0a38a8d9a1b6872955ecbf537807c755782beda87213195782da041487a63055412a319a09f86826d95949e8c3e7c34c5b92166518a9cee0018128b4ba16f9ed6f2b71fd4fa91533e9f7bb0794d478fe6e37ec588d28455b29b7a38f962a7c43595a5ad76eaae90061474ac80ac6bb13faf444d74d442c83e965587a2ac90ade41d5f3c6f526ee52843cc63fefb0cdcdb7528b1f118e7fd21c960069deb61e54d7dac8eb7708b696e630ec40bc1e0f792ecd9a19705c947a7f98951bf933b1f1554c71ee20a55325fdfd9d5eddabf069ea43154ca057c8fac2df35b1df43f048fa09f9b8812af38dc91bd6e12ba32b40ed25ce07f28bb9edb0f9412554cc6b5e9767305219bdeb7f94b2a7435b44fd0df40bd1815b7463a10ca51fdf0bedae51fc7f8af0eea2547c45986d7cf4cb34d80213df85e999a75b8c629aabe43f536cd42cce6feb1632bcc6649cc8a33d41c8b0f2cf497ac6372c76618ef4c0ac46ee90cba5583f18c2493c5e958f62c0ea1b5675db9d760452c57a10f0f916df472611da2538ff80251077083bbb1a95736eaf3eefd1a6d4663ba13a72c6483133ab04e072d87536a254ff00801d844174c9ef07c12d0a81c4a5c402bcacc6548dcbf89e8422ec1f54d63467afb49770ccbbde730f22ba7cf2dfe6085a99fe7d9d911c4c19ce6137e4793965119fb28b33fd4ea227dce9a963acc641ddf86a9614814822419465f9b2e41bea9c5496b401e7019765fd8ca048ea595b9a66ddde8e8775de0516135200f8843fd6c943fa1831e968a938c49b86daaae97334a44cb073317c317eaad500b7f46fc3f5021f15a5782163b43e312aade73f29e2baa39d22ae5d0e1fa9812a9e90f7ecefe916fe8d64a6af470f5b8faf74e7a358fe3e35053ff7daa50a8dc5120a93baf1e4032914b3e2d060e4b80168dddfb524d362de7ac34a86145ea03ae81620aa9736cdbd8c3836f84eab64b942b3e5245d11297777f26181b293d036c7e1ec44ac80bc77fb258c5950c596b96d2f24e48ed250352365fb110a978ba4140d20276c6ad958005e9f9853bc685b0b6e2e2c9e9163f3445edc95dd70b4169e1132cf0c123de44515edaa74a658769cd92b17ee5bbfbe30aa488c4323c5eed7286bc92bee6ec9c8a045f5ce9c247febc1c09a469a9157de37521d3a0018539114cb361e8e91113f088c64e1677e1612021d99f9b33621d7808f7838f0d59f02996963564122ef94febf43e45d596e06b17d3c82c50982ec2b770a9923979c34a5ba236c9ed2e8103e019fc3952c5e4af4df2756d235ac5265ecd060ef6461bf8034e327b7f95d1b825c92e28976496276bd0e37daa380ca252799d44e382cdc2b952b66fe1c3dbf6f404e5e974153db192322e6ad67c8bfd2d1177fb55a0b408ea5c248f47f0bce5af549b03c1c100cdba450e422b186d69393185bc377293f9d538ad4d0c2c084ac5477d42d9d2277bc04e3c71bec9e69520d684123aece84b0340513ebb6756bfce8616450fef7e926e013d15fae34b6a006f0d0ba1c95b894a8faa8a6c70ef75551caed610173ef6430d5063f29f01ab36a945f3d43738717be533b53b511e3b7952d04bf931c2d5a3fc9299f932871d61593dc9a14e0ccbeb93f96adb48de88f12a59c5090e4ca77c49801b340c371a07e08a64ba9cfc6ef509bbff3f60da2fda6dff9652f2b9ae03c8777987c010b7ccd5443c28');
INSERT INTO refold.stored_events VALUES (10, 'compacted', 10, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30342e3030303030305a202a203837353463343361303630326463326539633733653964323434346663633834646137633138313165633737373536373838306263636562636135343335393720663930343662356430373661326137323738303230663538663662313865666134353634303733363036666266326131336465373465626439323462626637360a8a3c3bb0459ff17fc599a3d03a3edc844c42ccd618b1d1d8fea3a571d8b66b3dde437eca8e34d0befc4c52108ad460cbd21d99fbfc9f9563a4a29de5ad9c10024f378e8512ce75c6922100a6d9ebc26281ff6e27430931813fd3b5f195d47b1615466862135f55bef2dea83a371ea1e0aae2b3878b0e1ec0328b4eac922492b2457820f35d4dc58fa56a19437a5a900dbe8e3d663720d50de783a9b1b9abb6a5f000aae1bd80acaf89dd6a04bee72257f3b78bd7c75a3915475718e52dcdcd7c5119468d82bb03a2361b62fcaf9ac1e170c397ff94fd80c1f48034a3cd2186693108abce84d72cb97cdb83522423c37c96bcf73f66f1117530ae58a4b2e360e4b8b58e733daaa237763034e6337fcf4a6f6269f1df07ff67ed289021376fb4f09be60ccadbcc970e90560fe6281308e505b3881514c23740c55619d1e1f665923783e708fae0e50f78dcd20acb97b58e52d66de2ed45f943205225a9c5734ca351a521a753a04b94342c25775b7f8525163cfac279217ea34585f28151f769eb4e9f8826b8561b01d67dfc2b23d2a06db295a61c174c0e415fbb0c6be523a258ead4e4ae6374e7a0770a203b9da038daaddb90a1c485a0df126ee3e738');
INSERT INTO refold.stored_events VALUES (11, 'compacted', 11, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30342e3030303030305a202a203965386137653064383766653134636465336432663839663363373362326435656631376162386535623230323935353465656434326330663335333161376520656633386538363038656231363332396135383137376639633938343666373466306133323332656136313231313461303462366234366539316666376534340aa45ef8b37fe21ac8674d797a11c5c2b5f5a9d5d5828c0d00bbaf56c955382d17b4af9f32de224d0fcce7383df990d6fec6094e8e90bfa6a330f2072da256b6de10e83e691bd56c180fc3e03b84a48693d87d1c25ed06b02f8f76f8ca2e21033bfb7fd58cde60175d4e4e912630f99e1061b750d4b2136809d649945b32ff852c635fee2635b1a0216989f9283a1ae9f2887c3e56f98bccf6f3d9f32ef5d0fa26f096749eaffbb4921d26867a5fde8332e5483bcfc57fd41ee30b8b04e4ec3ea1c595e0df1ad46df2a9878f195d1c2865b0c41b809931a70d8a85dc963faed1c2b6d4389fbbe10c6a301a1de3e2aa088fa706b1d8539cb21dfac655b60afb43af3570e51ae83218e1bac48010d03dc55d18cb9b44d1e5e06bdd11a9c666af78e4ca2de31def135219278e252fc5ff8bdb27cee874e8cc7bed113e09e0cc8294a683d6e62a854155fe779e1c6fead955aedbb05511c0ce052ac7569038cc1b0583c1b3dd5e1ea0e5f65f83484b8b4055716450628d5c4124826ef5c4a36eb21c1c40b672f46ec36d532ed0cdf9e6db442e52d433188acb1fc1f6b4bd39c45d3847b971dfa8e5288958779c64b99e37b0723cee8c3eb54c5270d661fc463a99f6c994');
INSERT INTO refold.stored_events VALUES (12, 'compacted', 12, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30342e3030303030305a202a206661386437313739623734343935393162396136646137646432653032666362613334343164633264646131376437313262636234336232336538396564643420363631393861303432613631383636636131313738653737616462393439323361616637313637366235326466326164633937303731373431326135383036350a92f6ccc6329075be893af0f11fed97ef263427212e413cc6b51932a565d6f6c8a5bca0219e3ccb195c967574f6e2c844f8620a5b699da5b300a4e6a70000f3534a65ca93487c289f792837f833319cf1fa60003e0f020cfc6c203b38adbc7681f637cfc227c38a78c7be2a0916f93658a7e422c0eea7acf5293c8893144aa81a13cde58bc9519395bd27fa178fb24b63ff00e847ba22bad629078ef0b491a9701155a7d3a9620da6e5486abbc9c399c236f3b1c149c52f3b78c78ecb7d8be8043fea83a60764b2048c6aa535725250f0f57aa5757ed568b87fad93b2697a4e5dc45007d6962f1f9e11d28c93b772b8e17c30b18392039ba3dfd9a78856047067bf51bd2ec4654e2ca3c125f7311ee9428246e98f5bacf703e25584820e2d999a8911786cff011adf5fef126c3f55eff1a1ea007fad82a119019d29de3cd49d6db412b86c17b997d09b0002c863d1ddfadc8a90d1f1c67932d97c7921cdc3410cb89e39b8bafbe86bd5f394326aed522b782babf054d91c863d98e483842fcbfcdf6e51bafb61a131e912db5b87cd5159ec57723f3a098bbba6db801525275a4c52789ef604e307df941be8bf96c73607ec4e74940be22b24d7a1b5786823');
INSERT INTO refold.stored_events VALUES (79, 'compacted', 79, 'summary_superseded', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31382e3030303030305a202a206336646266366332326466303532316232306230363364636534323738373538393938303861643131656665363564636262303736653336333933363831323720346363646164643262616532653537656330633763373635373432343262356231323533663139633432623036643863343833386265313835643536383533620aa2641996d07c54ce5df4eabbc23b3d9d4d8180b8df1cda488b8e8334c3f468a9cda55b1033e8af31cdcef2d2df2b5b9b56791324761b7b683989b6c4f6ff352565d65e8fb23f22597c6bf4482da0ac6bad48');
INSERT INTO refold.stored_events VALUES (13, 'compacted', 13, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30342e3030303030305a202a203764323463316561656261313036326633336564383430666434633464663230333261643730316630666135356161656365343961303264383562383064633320643936393763353064653061343932643766336636383432646330613264616239336130663931333636623537306662343939646534653962383239326334320a74f0b40c57531da9186480ce80cf4fef75be933285e41a5b722f28b54865596867ad4c66da516b2f07cbaf45d33f510dded059f9e35681280c7bdddd4f6aeed4cd4cd40a3349a8bfdbd488162bbac8e482f58b60969a042c02d7c0461ac5f1ca3d2d9c5416952b93e377238066c762e06035e5b5ea898fd2c917a02dd4dfc9398cbb716636064eee15521631abdcb9c0311057214f3b38fc1259c54004556a576c97e7af0824ee2aae341805e4c14fb338e76b08d5d1cea056a0d5b15733c635166048beff362ff0e4bc8f80a8148b97200c284e0e87095bbab6c25e7ca93d8c3c41cd5c751d700f1f647b591e741021c29be3d2c4886170ea93d1f18a86df1bad2ae4b4a2bb3896e38036ea1149fab4201a883f91da2e2c32cfe0aa2b7b9f903fada24dc8cbcd46c06d1905367a85ba9916b699403847a356dbf5a6001556ada79a81c8b61d8059d3f7dd96cebf549133a5ae16af02bcaf62a66c8a43029091ba16540417c0e3a23ace4f1e42fbd17a9beb8f9119a9433dcc2195a6d50310450c668418d521d5dacf36aca847bb5a54233b6630b96f04bce12f2335b1f736399b8679229a24be0f19efc9559e57a9acbf434eeea83e4a8f3e788ebbddf073d615');
INSERT INTO refold.stored_events VALUES (14, 'compacted', 14, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30342e3030303030305a202a203837666234346561616532636534313935653862626565626462353037346664363539653665356232386635373861356332373165393464353733323966666420353134383234613037373563616536373235316463323436356439376162353831326165303936623733323230373732643630666464613032316665303464320a80c29cb9b1804b3ca2650809b6bc8f35720e94ae5ca4059b11f63a7dc8c8cd1a9f3f1c62d89e22b8f9262fa2eaea50760b004474635ae1de7f055e79246feec7675c405ad51a18d5374842418c9b21266e510f6adc713438da6dd6fe2d5e6c6856670bb750c01d62c82a8890fbbfaf1ff78f40ab2be2582046a3c9478b1cb049dceb56ac90f2f447862f389d134d9d09494a288688099da2396f24aab85cdbb7613ecf1ecf989f88aaf51f2ec52a22f9e46d319f365ad4e8146aeb189c8090bc8507d92d3b2570c3daac0606b842bd89a44da74f8d02c9183065b3804ba25d7b586eecf057ec314d33ad6db0b49af163d65ed210fd84158455a4a3a00d66a8193a7b18aa4204a65049d2b109f091a606aae0f28fc19dc427eb18d272656bfcafa9b277dcf142116b37314e2b782c671f12f8be135827f097bb577bd4d647bd35ecc46599781f59f9c8f2a5ab57ddf448aa60aaf0e61ca8ff146f4ccf76d825f3dc943a078bd9012015c583564b6d8abd5a7aa6fa7cb5061f1496a07d1a371a234e67db002fe29d463c3a601923ef65b67beb5804b7fc9ce213ad45026d6ed729f33cc0a4586d1f3d59d5c5beb308ea6016bec94fe02a4a70fe068d99bf19');
INSERT INTO refold.stored_events VALUES (15, 'compacted', 15, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30342e3030303030305a202a206634356663396665653164623037663632656637633161313961366566373335393666366364373765653734633831356532306531323535376439363835666120646430313436636338393664336666643533343133336134313438376565333632303463646164313066373739656163646133666137316334353236663539300a508fbfb8320f703ba9d29c9bc3e1055c14667ae5bca47d35918834b3e80644b53322cd345e6c97df65503a76b21a9d7b44fd28f299c2d3ab1b078e53d3fb1f4bd3e2ccc25a24cf55e0b4d7bc5272dc1ee7b728210cf0a56360ad32cd0b4143514315271e69007ce84780d16f0cdc2ff7f5a5617c44a46ecf1f435acea64cb02524363cd5dcd25fddee373551bbca88cd0275bfddb72e1d4c1f53781fd102aa3021b01ececadf10037bcb64566cf2d4bbc266c25d5824cdd501d36269b64062849625d69c25e58fb9acc8e3c1e658b7f3beedc8ca2749f368ede31382060b926d9191376791fb61a24c65347f0a87181a552a7367b180c47de2b0618a042361b0712598c7746dbcbf5b52edd1051ceecb842faf4f244c9629081f8ae0a90e3b4578136681fb6b18d9b3294567548ac0dd5a43984661ce899b6e1a3ad46b82090976fc1fa6f473ae3d82781a648380bf55cfa08d9e4be1aaa347a39fd52bc7789de76c35bab2c291c4f29c3d048075ba298ebd1bd9d95a43c1f3f6d30f37a806693d2dc34218eedf96d7068c48f973d2cf91de739930acbf2c7e7d61dbc6d146061fc4baaadd4e0c3c351101b6d5ca844bfcce98540543f288536ef13b509db4f4eb');
INSERT INTO refold.stored_events VALUES (16, 'compacted', 16, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30342e3030303030305a202a203235346163373434326136316266333734643332323364623532663734386432336431663036626463353233353266343537616134376231376633363536613520633530653234633133343465343638303632366166333263373830386531386139333634623732373839383836386239653764656539313632633939303435390afc7c08e9d70eed810e9708783d138fc264ae716009af0b310772bff1882436f4b8d603332186d366075a5f7fb90571cbe1dd748ac43eea519f823c05915afe8748bcea666fc9dc445f46f57854b4f93c385afcca8e0af0fd03488baaf4ff2aaf0486d77c6014d9a01476570fbe5529d3d41ef402daa9715379b2deca504fe8554e35e0bd42479397fd84b9db020d10d895d55a5acbd794fe1318d61c2bfb17bf8bc382285f228f428c3d0d07b63ad33f3faf138c9867b4fcd814ac0b3c7760b61eb841ce7c1ec6855c0387ad77af673b54c9b3fcaf9be19165888e51ddb6ec2ca60d16455c8f064b784c6b4c83cb29c7d7c1ddbcabd9b8c9dd38263f31ab8fb2de7543db449e25966dfcc0afddcc3b20768012e7e6c87b5bfd2e60cba514641c89113bca4d8f89803b10495f06ae2502f9193c26685012fef35a44567d1380d987f5cca0818d9ca974a2268e1b954901ef34b4f6273c73249f42fc9aaad2bcce90d8c74f2e567f1c1000be1a1ee0927f002a268b6062747c28db3d4d70b6c0f3d2b51b6b70289b44e7650505469d3ade7dd7be866f892c7df13bef4f09d9fa3481d08e9eab5da55d8119ecc27f531c28d6df2c8894ce720c843324fedb16');
INSERT INTO refold.stored_events VALUES (17, 'compacted', 17, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30342e3030303030305a202a203138623732313737303238303039366630363938623961313537646432386337323166356238623365343938383035646432313234363839353231316461373120396465613462323864656463356165663462666530346562343238303638636661646565333434383230316539613835646561616461356331306433393535370a6cf8906b05c0bf56d2abb8bcc96772bf83089cfba22541db02b49ef16d1a8a4c5be2b7f87b48ed0d78fd1e5ec781883ed5a78da8a873afe13d29ddf5d82fee1bb4ed5f1bf36a93cbb6b2010c63ace88e1ded601f33015627e9ca7f4a8c24a6685292dbb7301f12d10bfda9ff664a1dabdfb97ca2c27a95104242dc97ce65821861bf1b75a601bffba2802b3dc5d6fd1ae0426a9c1f9f2c7d4a62c83436bf440c9334a1cc0a20258ce89b9f14beb1a2b17d3b87242c5b705b17058e98a6dd122ef226aef1d74b1592a9c7431b0b88f3333073ff0daf304157bd142a4c0ee0d052696884da0b48454ae8eef33f2124948ed565f4f712aa94a20f11bcfca66a3a3c1dc5b01d358242c7bb7d2b9724dcb5a8720f757fa0ac974206ebc191e84c89bea13f9687f9f5ae31d1f6963bd31cd75b3dbcc9271c2967d34ba72edc2048371cee4c976fa8415c91bafa8490226727a83724cf6acf7f2c55376211b9ccc23a7824008c34730ac99f74fd4c3c3110fe76f7a60ccc64152e555e6de7f6974b3d58e239e473dd4354fd0ffc0e37d83286ee859e82fdabf046c8239df83d5f9b0e5d2edda7a27bc505e57c3f97464678e2e2d1caa6eaf9d7dea51b1035cc645d0f30c7');
INSERT INTO refold.stored_events VALUES (18, 'compacted', 18, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30342e3030303030305a202a203862613761393137396161643033643436313735613037313933626461613430643461343037383566656535663766643938343932623034623564626535303020376136343534653630643865653439323763356437306634313133343563656462373163313562393561653562353363373230373936303465653863353231630aeb285f689738e7f6e3e4d8f76a59d42b03f050592699fa0e145ba8a7a75878e85d8a353f5555dcf01bf167f583f88a865d79cce98c0ce9659f249d0dcf9e8d28ff8c9dab791b90b6410031611362ad1d9fcc44dd14d3c6b0c1bf0d69b619f8928aed1f844186b27fc2a1e7ee23624f9ea9ed72a598995fef9249934336bb869b3c62abe45dba38c80bdca6e87ec4f8b4207046fec750ea3cc9c88646c747a8baa9f61ea18bcc5af61b4b3166c80e35c2141eae41bfacaeeb543af10244bf2d05da08e17668fa276ab2bc1961c3949cc4aa3fcbcf85474d92029f9e627862570246bbbe87aa3acf0321048eefe4cab24e9a59c0df5d352bddf7fb599954aff071f5313783430f4bd4a3aeea229b1e788e4d4ead0b54593be04a97f2d4627e7077166fcc708380f484c944b59fe12e159ec8ff49ec4c8816d93e0946e5d27ecc393aa1259f262444d2345d54a8dea7ab9c9c2753085950627b209be4cb7b65d03873182c03c7a6fad41bb5590e1368cb2434d33cc7870a318a15dc8d0715680aae1fb7151b77ef8082e3ccfd9d8053e84fd5da94657cb77fd9b3d52447a2fb54bb0a1d7e0688c97c51839ee43f5fcc8bb0b7927bd198a1444fce468914ccc8');
INSERT INTO refold.stored_events VALUES (19, 'compacted', 19, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30342e3030303030305a202a206339636664373934653566363833666162616366383735316238396639346332386336313032353961383430323332363532623937656163356462656263326520383133343039653732656639343364316435616461346433323964343530306332353835643934633732653830393931333563626230333033383635353838620a5a4bf290c017bf66454b1e4c4e3fdc7cc2d090d85eae35e12a27f6fe9227d3bc194061828f13543beedd04ffb78cac0e07b478275f4ba5c7f4d6e6596e272df51c7339cc2a6fb6ad0488ebe578a0d95d7bf0cb609f3f552f411afc7e86d831c7647fa674c7192eb907109ed80e3081a8a1d360b69c931abba9c4d1596946d371effc5a600bf8129651c43ae0d6668daab90e65e101c75ef43392e8dd0542eb78b2e0577ebc04ca52908aeae4e4048eacfd78c6158686f29f62f0c5d7fed5b6d281645110a0888577ee00eb7b4826a5bcbf2dedc1df9c5d6dfec58437e8ca46492e3b9fab62c1c631fa711764b8df19cf35146ddd60bcd398779b8c0e0f55675b2c58d8d89346c8e2d1abdcff36ef0651c681cd34c678d2167a09daf8f3fc716459208c40b4d3f483a311d43db644ace47eaaf86925659bc30f87a1ac168c129739f7d0268e1051c825ca662ca7b75aea8fc8c555c3acccf3a89c7b0c0645cf16608a68ed7fda0582f6d66ebbf7d370aaeef69cf15d91ee2eeef4f379ff1fb79982fcd81ee1e636a91829c5832c9f7f1b139ef6f3e7c70ff3bbc378b503a34b2b808866c843d2597834752dab17777e1b7d8223192124d53d22ba0c4991de2e5302');
INSERT INTO refold.stored_events VALUES (20, 'compacted', 20, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30342e3030303030305a202a203832356237373162336232303766366430313535633661326139306164323434653838323331346135656161616462626138623663303666613536326237363020353464666464616665633962653830386464656562363632303131366331366637323864393262336131663536613935303830336665306266393762653535660aca641d086d33122f13cfb194aa588069c54b73536d4ef1e01d205da67ba43b9935e468055e11af2e644d5f3e7bf29062c7e5d0ba6e2da8aa64446f659b9d54a6e7f5f7385cfc05a4d71bdef6730f72e886441a0c995579c814943ef0bfb144fc134f339bcbdea472eaea246f53d26c9890beb1372e835f44fe7942383aba9ae01275b9582e80e8a90ed8b1be56c05554859c392e237fe5ef13836176856998cd3b6c4c5404c15dffb72b3c0d0adc9a4db264769ed831e64c17f8cf8b29311e6e80fc90e9a9e7a3d1fe685201176ebf7f369b44062260fe9ed4bb7d019db45a8183eee56f10587d03534b76232b439c733d5507c047fb8d545c861a6515696dfced7f59bb88658aa2c4c16c254de1bf7f250cbeaa76ae1c437266d96325e6de88a87189a4213ed7a347c7f58355895081ba410e9c1915d66bbd5cfbf07efa9085804bbb71ef1c7670ea69b21afbb384ddc3f8eb078d4dc6094602f90f28c1ad39adbd19c9c0c155e6ce2e956e6d993f2e233e5792afeb963e740cc1e9eec79a1f43093d95a240162003ffb9b34ee2f7544bf7e2ef0f0c49b9a5974ab47af55fd2c367f5cb2aa4738dbe490e7f75356d5dbc384a623462bebb84aaced58cd9');
INSERT INTO refold.stored_events VALUES (21, 'compacted', 21, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30342e3030303030305a202a203862613632383534326239393336346363646139616431616139336131386332383431626562653533323465656437636333396266626334653262393333396320663933373931316265303764373438666331643930313164663232626664313861326539363734613534346439343435363135656361343932366636303133370a5dad9b8e3caf03dc94c51acd2cf3516f0f7155f11eba625b44f319131482415a5d46b562be63379dc2a7d925e0919fc90ff0803ea4b43d7bfb18a31efb81d48b0bf0714ef98cecc73db038fc222a4bd89db5f732bbc0abef0fea292ad1a7ec55c128fd94d92f21f1cf244b99fa072db5e715e423a2c924d7bf797202ae479176837b7d0dfe9c31089b46ada47e022466fcce51a506d98043525134a7bfaccbe9b131fd1b174c6b302ea5e15320b1893d81a993375f5c9d1b1834222238a5e53aa383d3c6d76348d343b7c05ee3cf984217dbf4cc69bc6e49ed8f815739e0a2b64b2c5507cca219dc7b1ee819200148f53c1363ff886e273cf718db7e0657a770fdd62f4d414f1fc64ad5f91f23b1dec770e0614e86236217c578c7a850bdb67e4be7a0abd0e2a2b22ea1180728d1de4036b39f8e2aa1e1b13e7703f42f7d7dd795599cdfbc32743c5ce2c612d0c57582d5b912a32ae2a9e85c2ccbe8e3244043065c936cd4c7c45001f61aefa1e139b33b76af6f782d008066752d79c252bb5320bfeadb116ff17f9c870bd175911224cdd4e4819ec6bb9fdb854c45e0242efc341a5c1300b1be82d44eba19678b1f5c612f5504a939bc2544a6d9680f9e95e781');
INSERT INTO refold.stored_events VALUES (22, 'compacted', 22, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30342e3030303030305a202a203363396539376530626165613461353135343933393965633634383763346462663662613639656461626637383361663261366333326262646561376530653120663534396262323162666330623030356136373964653863323637626464323966373264353666643239366439373733663137393362313933333966636463310a462bf036ade13856040f3443d357938e670e85bbf76575f14598e56a35a41599c2e5a386ea420fddf450b37d63dcd1921f88d119f47c362a2bacca642bf91b71b9dfcfd2b45a75ec718ba9c0aa094b9237d972ebd93ccb62e442a4e04f38face884d15779619a74e6a9e6ff328c10ccd8f1ea131ddecef956748d6d18349cf8369d53d896f44064780d7b2fa76d1f8ee7642082e06c784dea9bbde496ce719cff32b5d2bc6f954f16042b1ef723a26e2d051cb3ca0ad9bdb984c5a26093f31b3fea1ccc36f0f2e991f82a3205898c5e0b3bbf0aad913f0ee1b9183cfefda2823724804be5288d850161954d25ab66729ac9371706853602ed8d43d2c476dbfe4ef8b1adc57fb1a2f312fc08daa72dc36d25dec842f79fd4145a8b4b25da2f857e236f0a755518b92a492150e6768e5d2aee313c56e28960519abeea45f56564bdd8f4e34f171ff2de0d0949b7acf9c8a516698f1a3e520f69b4ea1894e4c27459bbabf4b4bab5d32cc6b9fd132fb6923b27ae52809d0de9f72bdc125ff373f26df8e3f34ced2dd80208b5536517b553004ebb05b9531c621d10507507ef7705284e5a5fcdae3a8657d7ebbc49f52cded58c7450b12e9bcd0fbb99111c61d');
INSERT INTO refold.stored_events VALUES (23, 'compacted', 23, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30342e3030303030305a202a203532666530316565613138636435653033353961383664306464613234303334316235393735616161303033313732663739663866316138633139363136343020666265393564333037343737373736383038386263326161363035343966333363326362383139663237306339343338356531653166333763313632323430620ab30a8a9d1654c7ca23e00173944b3548b9408afe41b11e724b210c190f09c9c3d80b88847a9449e8f6e8508708e9295fb2001dcf4d3b3aec56325df349ba7417a21bafeeb43e961ec32f3f82c2ecb7d25dc78632738d86c4eeace5b24840196bcb482739527f1dae3a9a04dc28fb7f755723fe1d228845f8577ee16506e294567c87866e7d6c234fded3300c92c985f740b62d2c8a19009d4453d883fa14abf26108876592c3880ee8f969d30b8399e1e1f5a471a5ccdaab7fbc064c50e2281215f71b2777d1a4ab4eebdc2a707287cf1c5877575809e11206397f366e40a7c9f40e8ef6112d9a42bce768a74e700ad448689ea51f64ec3b96543f0251e04c5a5f20d4c8e3e13ad07912ac7c0de1ffe6e1059957c3460a115d7fd00c3836b35ed6e97b7aac08f647c4a75956fa6adeb48f2b75e9e52e8f81615116279cd0c20758759d1eaec77adbc272753919a12c950825f2dbd77161dccd68547429259b6f81acb1527cd917b25930d6bbc5248d10727aec5fb2aebd10d4f3965de8b59827d2164f884e9d3835d2ebbdd0faca176dba13854ea78b90a856637931035a08735dc5ae6abcae8fba01f8971129c1a84e16c743561ed30d274353444e89f6c8cf34');
INSERT INTO refold.stored_events VALUES (24, 'compacted', 24, 'tool_content_offloaded', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30352e3030303030305a202a206466643331303238363439356235653334633961346464316236363639366639343261363865356532656266633730323939636464623132613933333565326120653165623037373761326136306565376463666137356364363966353036366637663039663862316132616166323439383930373635363735396330336435340ab3c39effa7c3aa81ceb8727a3c27a09739de60a94c4060231f9f152c12c78b5798320ae106743d131fe0a58de8103696c7b73e4feab6a231a3561ef4b4ebdbe03aeb1f0ed3fe28c020bcdf92cf8619584bdb2ecd4de2c3de4731a2770d5ef2c58c2022c1a3177d9af3aa0449f202172cce824c1658fc6227a8fcedef0eab359ce7c4eff5154809a421903a7682574df4c2154a594ce031615c5f');
INSERT INTO refold.stored_events VALUES (25, 'compacted', 25, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30362e3030303030305a202a203638323662316362626236336430636663626363383863386337656630623266363037336666316533306332613262313837383464623435313930396163663620323964323435643833663266366534356264336631346361653133663663316132373139353435636364396630643466326562353933626663373737653434360aeb9947de9a1d982f35ddd8c00801a2ad6b15c274df6ea0e0ff46f84db8f86bec8d1cb953337b8f2b53324e6fec0fa9eb49e2196bba550a6326f6c00d2d8d39d764da7b91156d6cec7e8ffc327ceb0b188e611dc45b05c55e6c21483bc733484ce54733700f1ee8ff8221ad7e34ebb4da72bd02f6e5d41803c7252a55c5e72cbf003a9ad7ebea7b45115e458156ace2b7632ed1a5eb5f2f44503c22c39641da76a53a72983b24961ca6cdc24df02a1cbb76c5a97b13e8a7dba33ebbf35424787c92fa098bf3452a361519d7a2f9587bf8a4447376188a3c7bf2ded14676d857287f2aa910b7f37f340e9599e653f0a4a6ab020f3a720e4e69ef9a5b16e7527b30af6118479ac2391c2eee6e27356dce3b637c49c3e1d0b40429102c87c516fd1fa9c54223eafa62bfb22a7b2e644a7c402099f2e708a05841b468c18266dc5d3085f5f79442360f7d22c976af1a07cd9953320236bc34337fbc51013887fc0ebe6d6ca66edfffc3a5945f8e1ed30504b08c0ddf66d9a12818a1a91a01978adb6cb5a40a8dffa69e1ff20da5037f9a509f3bbb6d38fac045a70a88283710a32398f83d0c4e4220dbd7c46505ade2dac9ac2a63693f59860fe4a101bb53c64a');
INSERT INTO refold.stored_events VALUES (26, 'compacted', 26, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30362e3030303030305a202a203639633332316639643063636563323564353635616136326239366334656361346566306562633630636463656561616466363132376339333931323061366520626561376336363431323862643865323836376436323735626337653432366436396662353861626639393337366535383437376539643237373965616631310a39033220585fcc4c72faceda66dbcd0fee9a3cdb3c8c0680fa12334d04bc5977ff74a57378f46a2b9dbda39eca709b69d5e64d699341e1a2a412f9813b5d6e311219dc89988cd13d5301c3b456bf4d154db886af776492075626caa052deed46da7224e84b14272dbe9b1367f63e06e1248fcc7c8e661f557790cbc73c64aaacc03ba3f897bb48158d97e26aeef03a25bd8f419ab1480db37d8423b4859a486af50251b5a1aecf46f316e5e35b928b4b9354dd06abd83da9980b9d355e3910fd291cc8c77e66ad90ea43c9124a7d4ae56504b35fbfefbce127c9d9dad90f1aacaac4cd12dcc499409b540e2d0c5c6fd88cee761d5f063467b8fa1d2deed749c91dc8c44e29fa676fda7c1ff9ce26728c074c89bab56c5e30ee016a0e9d67cb3f03c486528b81327fb7eaa2d89f432db044569c702e02b1b2f57f91adf819fed95408d65ab0add9af52e234d9ddd904b99d41281e8d81116259fa2f3780b823cf45930bdcbabcc5bb8797c1718f6d3fe477c44e579864081a414b67efa88ffc4858fa1bc8c21df6b0fb60af95b52a879a64792a608c6e77bbd0410bdd2821a40892d1e9aba219e21e02779992fa2bfa80dfdc9fc0827c6f0ddc6c73d9f65551b709');
INSERT INTO refold.stored_events VALUES (27, 'compacted', 27, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30362e3030303030305a202a203633376234323031363164373863376664396161626434306133333066303536363333626662636531383035343232626464653132653161633764396435633120643863633665653365353331333434663265363938626131356466646231616330363035396136373633383866313363343238323030363965326632363430330a89b72c078c737a5e83d301662925c3c651a536ea6621a598653c6895e9d9f909c6b392f496b92e98b779017f00cf88b143426396b5babcb848b34acc201c7806f61251d29dfa563c401fd703c3ea12abe3483872a1183864797f6f9acd46d9e08466e570f7d2e721660962a218f9f1995e336b0f82aae5318d3dfceaa8c1ff05885161b76ecbbb3a29680e035669f43dcf546a7d665385ef781027956dacfd765c776f7afdeefcc73e89e3c9ef4ae8433e748ac4cef285bb64e110f7c8cd817c2687226621dc03e656349f7d614775ccb94ec1e8021dc924e1bc23fd0a98c2e0f308a51d8de1dcdd1e3581545341317b389b038535dceda8f334eed314f7e00baba9ee0248398e9f2a330933d1cdf889a404f31432cec24cc49fa3e8ee62c8f1b94f8b38280e26beeebb58d2db626a8396d7da187ecc97154c1983145831a278d3dee6b4620c2ed0cfc652c157fc010e9cc5092a79613966bfddea98075d34fb1c1a912a81abe6161c295fdef721637ff53c4bd3084ee6237ba18593bdefbdf8217853896f6d996c032cd68b68b5b04aafa8d9dcca66e6fbbecd356541c4f0b56771ccb9aefa2a9fef61b9ae9934478c67834624774f139ecb320aa8bf3e');
INSERT INTO refold.stored_events VALUES (28, 'compacted', 28, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30362e3030303030305a202a203762383266613937636263333936303763383562316530383834656538343463363036626435383035306332326631663163346237653231363861636164643820383462326666646634633266616334336132346265653064663030383632663738643331316639303431336162623666343935306566393864666266326362390a05dd01f0f94d5e6780ad6b6e605473b8ff1ddda4cc559692674765ecb7241c2d63b95bdbeb379b587f17e01dba555353b1298c97fd6578697c8a57ff85011f7351faf3d4964b3fada4977bfc28a18495b776139d67fcca2cd88f1457fe82c1e92bc2a51174a012f1b49e0a2915d486855fa0704703587c51a0b40443cf3490ee103ef821eba6dbb1cf92cc75e2f3370ac9d00e8f2096905594d98003caa199df17ebe844c6bc2605f0be3912120c4464fab9b369744fe35e2b8c40801b43282d923725879c20c6bd6db178086ed0fe44290a11243e7121ec0a6c3271c99096814d0b450d946a531c6cb6f86e818fd634d4934970ff60c30a390516a3c38e0e25b2ad3ab7e2b0094d05edf6601342ae9f6ab3d5708dbe73b317297fb507a87aa1aa494dee6bd268a5f10e6a8eb4b07fb1eb2343cbd475d16824bde267f8a9b2670d1e8304af780b7fb21c4080dd3dfd934aa46c2ea4373cf6bb0ea1d19fa50b025304754c56258a855b59c5c5bd4f57a11c74dd73d1f27fe1acc3b0bd612d4ad558249587801f930695d6ef5e26d5dcaee8361596850e28bbc7f00b2ca04948b8027da51197998ebb9828fe932186a927f274b79913f8b829244e32221698d43e05');
INSERT INTO refold.stored_events VALUES (29, 'compacted', 29, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30362e3030303030305a202a206163306435626332623461613063343232653266343132666266326137653938653930653837626465393838623539616336393332343331343031656465613820656532386437376436663466366361646139346332653864323866366334316431303939386265373535373165393161653330386436633763333536343862380a33995a83e0a91d8a2bd48fd98897152d4192d92bfc949c456120b94f230004a11c550dbe320c1c1b87ad1ccd74c63876c1a8b8ca6ceb8fdda6eae5ed4c527bbdeeb8529b70ffb6b1b6d4611c664d8477cf32685319bcce4dd10f193392d3386f3874dd6abaa4c8d8ff125f7f51391b786ba0853703fd5faa2e28999a78f9dac0d733aa9bba9aa7062ecbfa3f0768292cb29f749d7cebce413f1d75e2e85870759e00662a2c6f7ac7cf5f360359314a38ae61d80ec122388723b8970b2b2b79454b7e76ae1a5744f46f02765b3bc2a188a13502249dd3688e435225c7ecb234d20e98553cecb8ed05e5669763c4c26c80cca0c6fe7045ede1aff61a507e65b2ac4aede7f8a4aca8495b2f7cb79541afc367157f9a43cdefeab2158412482088700bac18d295546f4343e8a0677aa77375ec83695fcde51318e176359002bd39b760eca019b36a8ac8ac22863d987447536a9a88db5ab50ea16d80dd07a0a73b1e15c225a44e1d2240294e5144d992904dc01af94e77018ef2647fb8f3ae3a5f3f8596c95d4071be23ce1a042bfc25b44ec24c8e994e16647d9a8c70df95ef0c6c61da06b87972ca8bfa072462824595075cc88cb02db16764d58e20e9643f');
INSERT INTO refold.stored_events VALUES (30, 'compacted', 30, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30362e3030303030305a202a203738383533306136373661613334383432643630663465303963303566363062323534643737303265373263396263616431363335613531373532613763376420393963633430333363396566333339643663316237306132613033306566323662393666343233623561313765393363336363393634323762643031653036310ae02046d5583bea05d3de897f0759381957700d42c3b2da4437fd6fc8a9ac7198bc96bacf2658fe55984e3a716dda5d415e5d2f06f2150cdca5d11fc53e5f41aab9699b8d0e467fc6cbf8713bc1e50eda557ee0cf023cc6b30aa04ae2c6e1d25af8c5351676860c502180d823265c8530e4a0cd1fbc5b72e6258c109ecedc233e2fd99d31bd70b7ced018e8a8da5b61fa966a1cb193bc929776e3f4439927aeaf3e913c395a43fe4d18a5e2b63683678bb317a8964ab171b7ff206b1277c81b96057b9614826801a4915befd48d7e17b7cad4e5a2716e093469b412217b3ac440584bfe6c5f8dfd299e6f18b6f99c6e986261e6d076c4cc5ca71299c16888f974082858f1b5e2f3c8bfc51547ccb0e81c4cac6233ceb55cf905223f80ea3dc0f597b0c0c38ed92c6254375b5b699a5acc40e9fe17e0929ac528e72eb8d48247028c90955031cb20380fd02bb85b3bf59cb6e32eb01b1b31506152e4ccf6d8a7296141150b3d6fa7377080c1396f365f740cc973f55fae9e9f29e3a1b0b43907fc988530ed28dee904e60b980e42bc75c8ec6f3f451cbc5cff092594cc21614682a32652cbe253cc513faf4cc0c640dc616b813f6f258ce0b418b6257a769d69ce9d');
INSERT INTO refold.stored_events VALUES (31, 'compacted', 31, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30362e3030303030305a202a206132363533383038663932353463313430643661613235653966343963346466343833373466646164613662303864306630363532383563616366346131363820363464326338623636343564666665663832376663656436643630386662383961303033303730633238363262623535633130373031356634366135353839350aa5c645b4742b7e4b6a2b3ecd33676b31d6dc82a7ca815a2cdb2db7199125ebd8e0d02768d81fb66ce1f696dbf55b307c9a6634acdc698920562e6ade555271f69759a9bcbc10fc88c2f84305409de8033e6fb62fc1bb29c4f186287df2e8a476c1dd4404ed5336f5f5f99ba594ef99d5813a5fa43c07f45b33b32d5c3a43a930c6e774fbde4a2f25171adf455429fd1127c8d201e7585a550abe4efb43f318ed247e04c3a28023c9c87940871babef20de4a5f74a25dfe21bfa8a34f94b81960ccbbfd6217f691fb34a0c3564e139c7eaac7af67e39188c1a69c0ae71f0492523e06ebe979d6a8b3cb98a46c0703842e91537dd63fddf1e79938fdcf129a0393b4e73806632613715951ce86f8f0f82a7872824c1c961b05fccaf38eddeb2744ca01c83abf08fc88444ebdc1c3f4c828e63ef4709a5f504f97fc847e39075f067efa61bc031ca704ed163b5857c73af1466a2f9736ded3a6aff0228c38b85ba40d8e9212ca079f607f3a66f8f20ea85e05a37d8f62ac24eafc68046ff6ad8a75302fba6046aabda6a7b551b4752b4180d726ffd40593b86aba0c82f4fb09c947b52f92059b0e53ab9d4899fda4c93072694aad6fdceb3f3f400c79a9120e');
INSERT INTO refold.stored_events VALUES (32, 'compacted', 32, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30362e3030303030305a202a203662656463646539353834626431313437646265363038393733633439666437663832343363303937666661393265613261666436323131356365333630653620613161373939303831353534333634323566643438613264376236636436336261616336643632646238333562623738316538343766336166333537376164620afc52900899cbabef34543f71fd392dec97d1cb527fbf6823d09f5675f9b6a848c3a75a8b74068feb1e91d91cea15c274c632866a10c2be3ea3f843d65f59077ee0ea033a50b96d8c6f9592a789a7bb1b1d5e3dd98ed3deec2cf5faf2d9ff025ed9aa3761f474b62bfc8476a7f91d4040b3bb7cda4d7db4d51b0b7dcb59b632657634708b23cd505fa8519f801d62872f9e8c29d4aecb7435d791be29529589425b6fef0fddcdfbe1a80721d2a2b913582601bf363d045f2d2fc4626a93c3cdfa715e4aff5263300dd0cacb197a95da7812182deeb51bfca2be3fdb7fa2e4ea167937254471648eccb5a276f73b4aa625805fcd9d838af0b0a1e59c14469b8b5d17ac406f8ad08156aa7a22ed049694a4974ec591d127141cf170718814237c72a63bb1bf6ef4b74f737ac55fb2fe2b5a118cc270230aa5f68e4e6feba612c47fd5a1925378f796f6f1d95026fabe998ab9b112d2a0fad837d332a34c4d3e9a4a4d8ec604f3d5381304caff18d1308632429b0d89ec3163f064a80ac097146e04f0534681edcdacb7f5030f008356dd87347a8ce64949c7f9ab680ed99b8f01d56958a4bcc656ca116ad766728ce440a00eb246a049c9db8a0f70b1488b5ba1c158');
INSERT INTO refold.stored_events VALUES (33, 'compacted', 33, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30362e3030303030305a202a206130656431663863643139353565646662646333393161386638303433383538313030666333333238386536626465373331646665326533306332616530316520333133393132613338613234633065333032313066383931666433313966336664353565373235316333363734376633376365333763663633386238393762360a7d43e788055aa536036462f67aa1a39294b222cecca3f9257f3104147f6cd5ff7595f76c07f9ed7ce3745f5069ebb609cc9404adb600403f858ce3e0ad7ff3ed18efd543d1c47fc6fa757234fef4554bca17901ad0793dbbeb530ac3f889861cf378210db785d4ab0bf2c2d3c6c4fc39eb0ef8f383fe5b3e3e5471606c85a8c131918bf3923a119e00c1b43b17f5cc376c19dc3184643769e7a2faafde5a62feeec3345cfa6656c3a04386e946edc14c92f22506c9fb0683f8bb260e647d33445f7e390272f1217185023dbd8986a7e6405bd83662d3aa5131d40b1f3feba68fbb364162c90344dafdf2ca9c0cb5c588c8eda8dffa80e303b6036dbca1f2a16e572cb86083ac9afed1206cc19c5abe228661917d4ec7b6c01ed8acdfd0b0c6f86edfb7bdc09c2fae2e6ff5c1935cbc35b215b7e587fc0630941d09110393975ca265e2c20d6d123752e4380439a7695c565cfa4622b995590425b024d6f51eb722d5d1392fc1eb03046ed3ebd55955402972df24170abe8493c29450c2dba298dba91a7b25ce61f9ab461dc25bd00c0f0d32accde16ad4c6b86b1843f1e7da7fe3ad2fccfc1712b6f8739fedb85ec4c000434f01bf54a19ce6a6c3ca2c24');
INSERT INTO refold.stored_events VALUES (34, 'compacted', 34, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30362e3030303030305a202a203437336364376131333137353432613233343634386635373265316335333161346338313236613830663765366362663838613530363361666261386263313920383234656432303566656132333461653134303866353066376662623932333437623731383766326532373036333266336233363031623436376533373165320acdb6f125afe081ef4beaf5a669f4fe2960c80a271ccf8f7d4beb952d96cad71ec3306be8979379f4c36ddb4530903a03fc2ca4d3d22c3b7775ada17e9f0f1be5ded5482672249b0fd5992c7d368d0220ee37216a42b946874fccd395843dbe7ad5a3ee088aa8a6de343f363e3cee40ee793059a93bb86e1fb64250e5fd1fc0a0f1bfd17170710f8613f6b619f1c9d2c97fb85a286114d581b888a046eec4ccedf37a6562723efb89a8efeab4d74c86a8c60701d4dd06d01b84e9dcaebe460319dc4f7bf06a7f71d3106b848f8c767e7da420cc51c2dcfb9b3016af5310dc0e8def23655f8a99c9f730015a885a9855e238d56af3464cc8f7cff257d1f54a6563930e631fd7e48902729441dbb61d5c3215892715993a2068459dfbe47cd8734eae083fc24c28d43f204bcc1b94385f7dd1240620a3501134400ebcee67d78b7277380c5be8629eda527a56db5b01ca93ebbf4ce070a92843d92634fcf007f17156d0f0a951b1e69b921654cdb1a2ca65963112bad6ece287c95d6a1e49a62e6d81cc5d96a97febe584b49a35aefd9500eddf31240a05e2e9788d98b3047060adf764a1c603d38edece6f17e51fa3a0a0123916c3f6324580dc4830a89d4b34afcd');
INSERT INTO refold.stored_events VALUES (35, 'compacted', 35, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30362e3030303030305a202a203865663465306164383466373838356338643661316362623335656261656134346333373532393238633366303330306233393764626136333735636435303420353863646635323035323563356630666237336433636264393864643266373233333963303761313461636162393434643365613362323731633266346530380ac456ed9cea31817b43f413c55aa71e3d3233e077bfa2066bf56d7a1ad217c12778e31b44581a73f5a095f0ccb805e219b89ad03686c7b07f27ab911d2d074a02eb850e4cfe87aaf0d9a1aea021ebd8e8ee7ca4d3f65ffde9cacce3e56a3f628323ff904828b6ca10478d88257d6e59fd0697519fce07f813523f35e7a9dae2b80f6908a3cc0cc519bb0d2f7c009975fad18785776d2beae922aa335b66408633e443c69d03cddead6815c63cd9b926cc539c82c307f02f1e447063070b705df9b6f0f4923c12d918891341828b5eebc6246e5b3dd87d4140d71830a557a14e2b66e2096f3ef8fe9791a961dafa082afe05858f970de694562387f2c046af18d0f7d07c60e8875b388a86733fdc81cafe616aa286fe4e8ddd62794c1355912e39c64b5e44dbfba7b2c649a23834ff59e93658c65adcbe365c2b1a0d2e1d5607cc3d978347a9a41037ed5a69d08ab6ddbbc548055672351f7234e3392caf3ac130e4099dec86f2d33b4fde7ca9e067dea1d1f0bfffd5f2235d86a432787a8e6de56eed881c6cdd5909aeedf4b4fd321befa877e41be79d1b4b06c971ab30a97f7dd4b2a6bacea72903f2db8e515ab08b3bb0229962b87d0dc2b2b173ecde40');
INSERT INTO refold.stored_events VALUES (80, 'compacted', 80, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31392e3030303030305a202a203130663632383433396464363835666231333730633937393832623765363034336661626632386238616162306162616131663137373866346430613334386220663039663865643366623661643630343635363834386666656335333232663664353563323263363161646366316537366464326266353466303338356561340a4763f392c131de91cf68dfb9191c6b86f2e1c716bc6b5209ce14c3e5b73500d07a3113a90513313942795a4b02c2113860ce8efeead4d142f25152291efa144bd8b1c91676f921a4f33f2dd9e84ae307ea5363fe69af5f5e749270cfe1af7992db34fa4ecc5ece417d1e2cca0b20e952947164a09f23c564aaf521d5b991b309025e5e8c5d1b202a88bd1f20');
INSERT INTO refold.stored_events VALUES (36, 'compacted', 36, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30362e3030303030305a202a203236613530626636363061383161646330613838353130356164356336336663393638363864333161666632646361303736646332343533356338613261346620306464353332613638333833343139383835363532336235633537333864663436303463376235386466643235636264663933386539666330393365326237620a86a2310376b4b7145e3f42eaeaaf00a96336589aeef289d0cd409064dbb78c010999b6e4efc8a837ea6852d1d12fe42cba418d62b7a3fe625f38eb8c6d6b32c8df66ce57e3f78adff34fd9087210dd468f0dfb77e6e8a2cac1773ef1f5464f2d37fe777e985a70d27da84555796b8309b09323113b7bf81e1298893e1193d5e3d4425b4281640d446ca6a043a490f4deee814036701675c8d5834d896d3486fd95a980643f9b007ef0048a84299ab01491dc9b738155483ba7be3a96feb947c482db55d21d484113ef14d9dda1af471a3f9cc1bea553ae135d082325b65ad661f06b9c7b748bf7299e5e4116f06b377ef1554dc91d02631e3f71cc538e9b4dfe573dc9ca9e48e697475e5df1743dbaddf379916dfea7b6f9dfeeec999794f8d719a2812e1da071f44dfa6970e5a6341c18404c211ae6dc0851e1a79c2e2a45dcb8caa42b65f28d34142d286166c61c93c0c7ddf186f9194d5ae1fa7d32898485e9d94099d42d3b91864b2c5a096acc2ae6fbecaa3d088bfc17652f43bbd00804ea4b289706a0eafec41bbf9d4154990203cc07c4932af958ddf2ce0cdf3e4653fe56bc4a7f5cee240187788f341a45bb1771a06141c3986eac190e06e262ad2795');
INSERT INTO refold.stored_events VALUES (37, 'compacted', 37, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30362e3030303030305a202a203436383362383535363661613333646439626332633632313836336232333362633934306231313636646633316438636230363530646336373832623537306620646631393434303136353330666461633434653739623735346637373439336662623633353666623436353936633933633862326137376636316531646635320a8114377d20e4e5e77cc4928bda1c7cbfe3e60ac344a93cdc1767478240c90b946b5509a369664f3904e071937a96f48786ce1c4401308a369f3ec3c1006947c2ef2bef7e20d4e37d0c282cc77eb4dfb21da9976b7218fa7580d4f10dd4f181eb8ace5afe72b442d283e66e3d3dc4aa3b15d5f3ac7c05ed4cabf3ce71cf219e8b2cd68ff342f60ba1d7fa099fbc72f357137d2af39f945cc2d0465cf174b61e37c195358ef8c2e96d3a1fdf228e350f812f8077b3fc117007b7f640503660813bc44f020dae263602ec3f65645741cc309472ed27e75eec9be30354238206676293fdaa0340469375f5f7e6534ae931a0ad7577f69d6313b9044835a7a8319c8c6ca310c00e13fa1bed808e797987e4184263cd06f240909a9ba09fab9537361890e4c37650a465ad2cdd5d50ff099f6b0e4cdae9b3a284e4856caaf924e59c83fbfa87dd98be3e2540be53469f453439d83b4dc5d5aed1f78663ce1d74f7357ce00adfdae99d8129800ad0500f83ed54996bd6029c44acc34b993ae9b6c05a09b431c2c1b38d38b11c0dd671e9e5f8980d6e275ec6d7cae67e5827d74e4524e6ebfe41a86530bd6a35f3684c6d3661a89139e6b8c16d8e745d3f2ee08358');
INSERT INTO refold.stored_events VALUES (38, 'compacted', 38, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30362e3030303030305a202a206332306463373966633830323831666538396634363062396561366332653932653361346631386631373161366137626664376333326235333364616530376320356466643061396134353834356261363239626634633239396334363766333937616335336134663731326163353931643236393037366339653663313637630a90cdbb1f6588ab514b38ba57f0d6aae621ac8c520299e83653e89b9794b03c9ae7719cdd5c51910201c35afa3f99545f0a6aa2f3298097c43c978829dce6257751cc00c7116a34401f453fcc088add2c0615f143b74d24c7f2f82bec51aaf1854796fc912a22e7464b46349aeb77800d2d2e9a2793d2a5ba01b71d6c98b07ccae17b26e04ab2c858bca91d0fc655507db0710148187dbd27bc4bde8eb310440a3af661be5f83042b93ef994655c7c4a2b1d7a82559ddd1c2faaa952077cfb3eeebb8fee7baee6009ffd9cf78f9ef707d234a0658ee7364f5f4f67ea1f801c93bf9ee11c365aadc388b2ab19224c7579d42b9df04f39fc1ca3d1ef4f226411decd095c02a20d9076358defa9e5fa8986d0b6c23919f6a07d7ba7e6ed69ed1f2ca4dfbd8f26a6386b473cc61a001a0400d72739a78f87cda0781c447975ae45e2b92d44cdddb01805515b2c2693728e5290424197ca22ed36755bbe3eb861b3f2fb81605587a086cbf6dc7efc60c8e4847cf61dc89a91f9a538f8119c873663cf2673e0c950a8b81cbf29436dbaa54aa18ffbae0601b62c232056e3e4face5eebdb60c96ad0d488a2f43b12c602beb56eec4b28e265e06c3abdb0ac8c53af27159c2');
INSERT INTO refold.stored_events VALUES (39, 'compacted', 39, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30362e3030303030305a202a206164313237663566623166623331613966323565333665623164336337636465366339323838633231393164383739313261323638333865336130633631396120333733336137633030383934333834306430343963393866666563393561663561363066356561333231346136616666396333623462613163326233393962650ac2d65c3aa2da8389f946fa4ea89a096722022a97bf867ebfd3f408f7a78ed4c152fbc1080b2de255c329657d3cc872a71c74a96f7d1fb3344ec369ba196cc6eec01b56a7c8a4e5302f73785dcffe54ec8c61c5127d78aa83016dc520586bc26af9bb5469e0ab9cf910a4702d3b65181e9e1400008ad8ffe713aac32e247bd9f89f0ea9de43b89181ae573521a2f392e21df6633d714fd6180da9818372608f2dfd025eacd247c1f51769193a1c71257fe7f81c638840cce20eef21c2801d71b9d3b653b94f5f43e3614b4b067f0e0b479fe908c97344327d0745cd20eed04bc996eae63a80a7ed742ec29e58e50e16ca141a3f9a3d158051a807237fbd6a5a37eeb10149afa38b64e737f81e7492ab3cd0902e5c8cf0363658efa891e16e3d8404d82e4d16470263dca5139b0c6943f652140335617e790a2bf0f87bfd6e73c2acca28dc7a59f7515ec6235df424281f7f357cc4b93f84369f44cc8bbcdc750b555ce6d4ff0d6b819870651688ed0746d87fc470f2ffce1405a84b9c495168b61be3be6debc9d2749bf1e9011cba366f8920ced0e0fc73cf26a47ab09360313976ae1249752fd5fde704288ff8d03e0dbdb27f5e8a86e822dcd51a22b68c');
INSERT INTO refold.stored_events VALUES (40, 'compacted', 40, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30362e3030303030305a202a206335303730646234626462303936376534353630396561383532383739636366636330303234663665666330656633666133353661383036666436343161326120663465613934383861393236336536636637643936653535363735646232316531386366316536396364623639666338366664343461633766383932393530620a3b78d28de810e6a401585f5a5d57cae08763b29992c1c40c16ce4734323fab6d42089bc503e38dc5df5893c1800fc86c715ad6dab94cd07118d962d0ee95655469f3390f3e283ed697c460d4ff973e507057960c1ffb1ea83eb4b368b6ce61ba5c345e328e2e902a4bed73e6fb6fc5ca9c2a43bbab4f74ff5c77660d44fc02b89a8a6dbb3d5ba812d3841f5774d7e70a1a0558312421ae804e2c11b355de5b14b65e90bf8baa9d67f894756999c8da3a2c67175606a8e8f1704f9f84953964c548d8c25ffa7a114776bb23e3feedf56f1718062dcb90b1b663711debe6afc6b70c3834e5e6e1b1dfdbfc829ee186d9667e9d350324481542afc96cf75c04eef15b6bc1d2535623ab1c8edc7f988c4acbed4ee57033b0f85058d1884ab457b13fe8715d6bbd7b0c1040243eb651600d38c2397eecfad49f643f56221c37d5dbe96e80a8d7fee27f13c5fff54e78bab083e140a73c355de7a5c9c0548f922840015a8781dabbfd96562ac8f18793cf2fccf94b87f0d6f81004580ac7752b05f582baddc9fcbd766f9621bbadbabd9f792506e1363f2b8844dae1ae42e8dbb9884a603694d3f2a25264b78b1048e2fc8c6224263a423ea8b49413890c18913bf5747a');
INSERT INTO refold.stored_events VALUES (41, 'compacted', 41, 'compaction_requested', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30372e3030303030305a202a203636396237383464346335643061313932646665346366316131663232613237626234386439616138333634666162306539616363386533653639623961623820353636373132313933316261326164653830643865646135666265393635313435613639353935323133353837306439396333363662323030303931353164610ae319bfd1461434886b43f90bdeac89a89bdafef001c294241d3bee947540c9b4ade624d5bf774a0500a12296a2576eac7c45b2c9dd9166ed178f8f5ffd579b3e03a04646613c5e2e0e5c3d70521876e5f337c4ac7747f47b309e69fa82fa3ba9f5b87a9c1776c6ae9699df8119567ca24bd8a8c058a0f82cfd257ca82dbb5b09ac6b60451e52f4d6cc6645e268a4a78a61ec642a8cd0e5abf9c624764f6b02d019b1c88dcc0b7e4af8c0706f3c95dd22db0aa95b756eba34f20ae47934914bfb3b0951ea428aa4442e694de5b442cc0e468fee5bbdfd302785e93ec67708a2a2e6e3cfea618997a66751cadc353388be0fab9f01e61f7f93ad5207aca114834cebfdebbd91205b9b8d8477cbb07abf3ba64e77ee2907cef6ba002bb45d8bd95aa7b26f7cc2ce62017ed104a5b94e487d30d6949e8d441aa98f220a4954f276bedc9cc473fce462a0e878ede21f9c4166b717edd58b594c31cd473364ebcb5f45a2e389e4f9efb6890fdddc881a375b56e26e684625eb0409db5a165c52dfe753cffa789be583e4e8dca532bd0f4c2a7bf6b03091caaeeb934eba4fe136f32934a5c0486041375fa925ff7d0749eb749e2c9ce2a36e70bec55be409e1345a9a9b7aad6b6c96a71d260d3d7148151d238618a3fa4cbf227439a0e828dd011f8096f679b1f075fe3a51139eff8351ca694f6efd4a1de7e3a1d99bbb4f6cd1a36c398cd0a403dc8579ec859831f2771e46f29cd1446a45a40f619ce5275ffe054a638aeebca9bc4e046067d7d4ab4fe6a778b2da36f0e35767958fc3e9d03da3cd29310dc46de9a7a9b90c8529c9a1cbfea95ac7bf97d8c3dbb5411a93819eca795945f5155a66d0e8ea823c09da5f33c55179a4ebc6378faaff16e1f83830b318c301ca29389650be8cd10e8fca2dc8be36e9522325723a0932416c7630afc6760d99b0afbf01d8b6a2e9aa715b24724205d357e358598d470c7d7bf5d6c9514c1fefa0cc8fadf5415dc3461dee79fb');
INSERT INTO refold.stored_events VALUES (42, 'compacted', 42, 'compaction_performed', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30392e3030303030305a202a206134623835343337663534343566633164313661626461346531623865373566633665663430633061623065313266633666386563356361303933636463663120333565343966623936343664386437363162633738633163666565373632363865663538646262343865623438656165393065663338333432386235633065300a5fd548a0ea75649cc0a5a4368bfa5bf3557072d3057b79b9b68c14cd6d48ae04fef8bdca15af8a1ba41ff1d5f326da2993e6fded4514df7b10e7fe8d9ad000470ddbeec8eca3260294432e04c4c82408673b9c845d6e7b2a0ed68915f96516b229631d2928f86bee194ac5115bc6001cc384910713dd8d1b6fb739d291753c7baa893b28acb72a8c08f52182a27c80d7799af80e00324570acc1033758d5275821eeae4f1f532fa24d79855d4f3bb9eae0cd53e5cbced1f5aeca43c24b66c09b4fcf85380fd2f2076203fe72c87f5f26d9aaf6f67bafa3fe1e64405df9a2d05a2cc5a3e461c8a347579d489372d307cbfc801a3a4986bb62247661894368c5929a2756d487d2a0bffae724e48f13e7aacef27c0d89b9debf4f3f6bbeef3ebcf5cdd245a5ff3f916792bab7361d2064ebc16250d45b0a38ee02d003554d60b62bfa6b4247da2d1b8851a47ee561f032d832aaf555649cf4ed73bf285ce907a593188e3f17e790490f753665ab60527d22cfb1324ebc78732d91fc45899f1f6f87781761a3b392a28af4ffe757efd5f80fa8ecdd8ed45ad87473939477b2d12b0dc358f56c66c5434f7501dba920900095a6e02cef3c98f30421600493101ef5939274f4a66a28c616e7f3988e2e753baa82507a19d386815ac22f928903c59cb827c8e4e7f5bc61fc2fa7599237c8df3799bc328bc50bca9454c80951f9a021d07a595e7ea60bb71fca27ffcfcc751d2058a17566e199995d3d2a40bdf669804b7199e523b443cfbeeecde3b77fb1fa1def3baff1fda53d353a248c088588ed17d95f1f9456db7e7957682a94ec3e14efa11127e51eed30e72a3ba551a1459688a09f844dd24bc914284bb2de617d6400a81f0d3cb706a6012b97a4fa21834e05db8593963472fbd93c03391b82ed7eb3c5b453dcf039b070c0a950bbe10036bf08c6e060d066746f0021412f9be2a562e06a006361317bf3ecd412df94e4d0ebc79f09e8f4c22d204b11f867314a270c1d051bbe33575c68677e1de286a504a2e6bd728fb244d2035f54534765f929bd8b800915af4027d7c3185e2dfa044d5038d6421c419c701f587e59a030fc77b711d1be9d181b4b661bae9fda4d00fb3c102e73166047ddb23dddfdf79bcd58152347eb36752900a5f637c699bf379aa092e1e0eaf295dcc5');
INSERT INTO refold.stored_events VALUES (43, 'compacted', 43, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31302e3030303030305a202a203230633432666563396433356638636365626463343034373133653762663935666537326132666638623866353931666234353066303035626466653265613320366532316665633563653630383837303365656161383234666337343166366161373362613934646337653234356262653330623836653433373630333664390a6be927ef128d9786a7eb4579b9805ac9264c3aba2f45d7cf9d00f89a293d825a2e42461b4297af54d57ada256dfacc4ac653243fad06a709dbe98547761ac488c3aab0eb6a8bc295ac24d0a7eed691ab695a8916b221610289ec7e13ab5eaa2a8042546ea49885107a4dfc31d1e47938284ab6a6fc413282d13b1a2c4d9c30bcb1040d2f85e9d1702c3b168c4c6a1b3003326477d0dfb3d131ed2ca31c985e0a76f39dbbda50b7a6d3d1e0d6dccde5527f2ed205d4562631b8735a93075d913ea01d95883bf2f0f47b44dd795e7de931603961a42a87fa00c5789f6620230501c07b7855189e7be1e4afbf04a590aae6a49823a2dae973e8b2d8172f25abb92b58c22df596adaa17714b8ae34fffd55ab80b738b17eea6ecd0ba0931c77c38a6fd0dcd7c9b27468f5bfa509bd82423a0e92934de5a83cdc4626b2baa4dc5d1575f75340d325290175659941cf77576891138c16a8f1cbc129b26dff10c0105c2b19639a8230ecccfe399920f7c1425bb494b4f1832c5cd8c481701b79118dc05e79e33ccc377d6d135fe3ab18fa52c8d98538eda1603f8353ad9ed9bf749825127836d2be62df1fdfadc0faf6bb346c6df32f00e8bbe03782aabf61bd7cd');
INSERT INTO refold.stored_events VALUES (44, 'compacted', 44, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31302e3030303030305a202a203733333135356130623135616563373134646166643839633764623438386138623039353733353638373433633635346162666231333134636266383438633520383639623865383434306633363866326161333361623863303532623431333031306361313836623639376265626464303335376661363234656638306262300a1cfb2d10c744e6b6d152833528814c6ba5896aed0a3346f16147ab1aabf2a4a103f6a7b1abc382611eb92c4fdff5bdfdf94e73873b927b418b74c39e8679bb873d5ac09b2a63d816285e0bfcf7047305ba3d70f634758ea2c949037e279c9fec36c5270fb3e52284608d5b76d95cedc7d0eefd4a0e15da0fcda096fd74f7da26ac60b782bf952d7d0bd02d505f8b5af22596d325936416005a7d6608fcc334d8e4a5e2520b769b77813e896b8a3f2f580700f4c47783669cbc7263b1a1e8cd2765d09121db0033c4a5529862a212de3522c1de4fb6e8d8b4d4ae4cd1c7e5d4e20c079787d435a7a647f9703bf911ed95a7826bae29497c68c825e51ce929ad5d068d14de313e70e7f412b280cd9d9e965bfe3284933e0a4d690f70ade2be8cb04a7a935d8fbe52b4d127652f07b60f907ce7ecb49518e192e08b82b7d0a2055ba39d1f62e122ee5e48cc6f188bb8cfc74fa0fc6f99385dfe1950b920c39004b12a5c8d229f7cbd504fc994d4880b64168e339a77f8124705b719300244f336c22b5032bc0c9f699366bb338067268d2ea963f1b5e3dca656f47f8b64cb66767d754c6ea333b72c22b82e6d9b53095e03132ac1433afe1038a625736aef7c0e6a21');
INSERT INTO refold.stored_events VALUES (45, 'compacted', 45, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31302e3030303030305a202a206466346438653338656630343337383562646264653830656230333731623139366630343666353932636335353837376663663737316265393135306635356620663437383063386564653133653238313339383962373961313234346564333630353337373135366438373838656163633235333137663561336566306538380a7c5b53e2123ae578a35618be0f031f80ca70933cf4a42d076343092974417bf999ce57212ee738c885c4a63d256add23640b28bca4039362b0a9d8cb629879de63a299ef56695363c8dc5861fe21947c9293cae0b173e22b7619a7078c72bf4ea051dde0137936bef6c162e6d6c70504e1b863fe3b44eb3d721b0c27a048bfcb2e147f1349eb4f3a6cf84aac7bfd7902aaa2af9bbf3ee6c39494d2ff274e0298e8430378aaea0d66f4b3e5a24508beb3021899bdc8f70ea0797103204cd7a5f131491751206b63a5acafc7a09625d886676fc9f6475d50e0b23f63ff57d322ccfb8ce50dce484da08241c257580d4cdf7d4222b756e885d5c9ea974304821a2bb5355762684ea14504f8adfca8f5ee13883be1c76748736d694359eed0a0bc5d43f3b7621b99d502b51be34a34f5c23ef5aed8a090c200e2cfba21ac51c45332a8847a577fdf9bb0341367398939e0eb6ec4854c4a70438dfb47312ff0d86b471f98173c89eb47d9bfe5dc184920694b11af4a606ed88661104a289a1a3930c3fd96a6446d1b1551e91668db9249ebbd8efc29cd899accfbb7e1f48b5858665ba525dc2ac8ffb0df7a8a1a1344f7abba588bbfee13c5c2d100385a42bef0');
INSERT INTO refold.stored_events VALUES (105, 'failed', 18, 'compaction_failed', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30342e3030303030305a202a203734623735373431346331643937343366333566376166306562346237393961633535643438356162326362336265316261613063326531653837616162316220623164663735373933616235333239336566303266633337356462613539326538313130386633386562666636656435353461363438646164323765336234320a6c1873f0cb7d8699953a7a79c0943073af8cec530a1e6eaa685bb7abbaccfdbeff6c607482adedfe4ae3476f3ebcb5df67a6649cca089c8bb5e5d1d76ea7ca846893c90367ad1b719a65bac3b3bc0585688f9abf15032b8a203ccd27b9a7ce74326ae759465b1b846910a711ca5d2cc54c05fcf7ef59c15044510ea0d51f8579298305c95d5ad3efb0de5bae4c7f041aa20af0c2748bd918974574a5c84632');
INSERT INTO refold.stored_events VALUES (46, 'compacted', 46, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31302e3030303030305a202a203866356434353838353432316138386233313938653230356538616435383139663730356631393531303662323462353337343137613633636432363133646520343662386662333461323139623636626430376138373630333763663637613436373139396463393534323134626435373535343766633630653365363761330adc3be88219e2d394694d88648d92cc3afb5c5013bbd297ed438a0609b506c11508fd07ae2baf9e6b14bb018f7bf6c1c851acf3d511328a525825daec9af144a928f244c4faea48a7526b771670bfb0943ec681e03432da4ab49750565b2c0d595a18414c8906c3b6772e7c00a43417b73617799c644b5acf1e7063cfad3058e9a75d3c3ca2888806232837311d87b2aa37da6d93613be55843f8d3160da02b6117662957910d9115d7462bcee040c56a8111ed893e1b9f4a194dc85dc9850ec5a5ad5bb228217c219230623f715a56be4df8fac4adf5c49f9768c05c849ff79cdd987e57433928f0e84a3cd829cf91219d6cc638891bf9485c786688d7e5b438567cac748dd58ef235d772d6950b6cdc6ccdae32fa9184b52f8b0652078e2a0ad24b0c47fb01ffca3ee16106ccbc6e0e107cbb33c914928c217307aef904030688965909e4beff273cd8fdd7ba99fbdfa09556ffdaf177644d4c1a39256b7c3c839cc2a714a65a11a52deaf4b346cc13db7b1d6e239dbaa92f9687a9e346b113cb66893598e79cb53fe95c6bff07e6a7a200dbb87d6fa57a0270f09bb95b9c6a87c51560f368e0874abfc02cc8a060eb7e8a4312bcec71dd16e145188e6793b36a');
INSERT INTO refold.stored_events VALUES (47, 'compacted', 47, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31302e3030303030305a202a203264333130356339303234626262626362653764313030666230343265393533636135353265323161663134336362626361343139356534653162316237373820363966623363343232613436336536393565623631373762643435643536356133343637366361643165376637663936376263386432346165383761313733610aad8c51aab9657aea4b3f0b1f673cc233810534244d849df796be56e1a33dc73892c18cf73dd372948bdadb02cdc98cdaba17012046fea7f3a816fab2a37967244e0f70b54f63c6c676c2445600a9cbf21946d3393715f0480d8bbc8e0789c3aed2c743ec23dbfd8494a2ad55cbdb800d5a8da263f2a686d9f5ec9ce5879b2b4cfdaad34a9b5b7ffe881ce8fcfa5c580a31352524254437b4919ad0dbc07d05ce475b3dcf2070d7113c99e84ec8d6268cb1021d56b150f39e1bee4b16d8c0902d3e59db68ee51e3a0d20a77bdc90f5355ac2ac9cf7b03719e098fd139f13af6cc819c7426e2139dfc80ea22ce91b6710308f8ab1d154c0de4cc96b91014a1e455d87c7f3bfea46829d7a63233ea532431a07a9b7c0998caf3d3c8a0a87760091f1548653f97eec8e5a9770cfa9c7d87a82fd65d60a55f26caef22ccb8267be72fd6d6e6ba90b161d7f5b1900b227abc0ae611077b18e025f7ff99c33eef142063f1de8a8c4ae50bd462831141a63591612f9b9aea8f975c6a10901e8e5a2a0da593e9209162fc2c3dc6da843f6bf6d9ab0f9c875e2a02a20f6cac3bd73ae28508d97925b3c815a766bb96d4155092fa00d8aa4c04eb9b2f282ff93cadda62');
INSERT INTO refold.stored_events VALUES (48, 'compacted', 48, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31302e3030303030305a202a203538393936666639336666633136343433363939343731313833343830653164343964326636626439623639326430613165313563396239336635396566303120343732383632663436653338363739336136663139306364306265393332303363333231396163643062343661623337363863643063313630633361636263340a986b4845b280a60ed44bfdd3f22a9eb279c195d9814addec379aa3a9c0e2262e966c74927bfb506e2bdb581ef5b1153634da3d3a35266d85b0b68a39c19ef085c41def9cab3ffd33c93cf45c872973afd0b36443b718cd9a7179f7fb93f28922b04e0da9d7d769d664c5aefac95ab0b26f9d02fbbf029e061aa5a3ec114098047e70631ddcca0e8d944d7ee300a683c420cf6b92445f8fe6eaafc13d5352f77ada5c129b3bee6ecca5c5448982a1a0044266f96c93089e42eff76f54adc241c57fb95521eaebed65d552dbcdc40548ba7e35cf25d105d22ec68e2865d327d87f5c1e4353518f0d9b32a6dfa21613695c218408bf838a396bee7da2831507ddd1ca12278f5cf9d3e2036363a31a9af58060f901be14188c9ed8fd8027b69b68a2834fb99c62a64bda54d16c2a9dd9c0cf8a67181e4865aaf16bd523496d213a96516fb4979e67712a19f4e0f494768c1d351eba2fdb3eb0eaba47295fd3fb6ea90eebdf20ca5db04c77db1b32ca7c730cc6abc4bdf7a76e85d4ec756d8a4748fcaf95c719f44c442e2e8387be437bd137c2c1a0e777b3653f5ebe2803df24292cda3f30ff263e5754e40082c2d961dd1b2e551d8bebc2026dfcf04a39efa933ac03');
INSERT INTO refold.stored_events VALUES (49, 'compacted', 49, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31302e3030303030305a202a203931633134653965303130663936363135323432316238666132313030613436383862326165326663663239656338653465613036346439633463643739653520353933626436333866323132343239303833643463366234656332363365313565326132373631653035383532396234393734653262363434616462306132370a6b9191dd2ee7325122a5a1da60497a585149aaa4d2b7a89e6cf203ac7d46683a654d050ad263bc335ce924530e7ebe32a0df85dc14317b0f92901c8ae4380b55f94b7cfed82d66da0e94110159521d684a8cba595b961b0c03daf625879310405520aa85542414a24a9db4d9ba731bff6e10ae07fb9f7dc5554315cdbf0ab898b3da0c70bdfb3c8c6dd2f554d3d083c790a63d47f941389f181278fea61d23f17a8157a36322532bf09089b1d2cdedea9955596f7c11e1c5069552dc4f705c497595e6e3af1398b7c40dad6f9cd69cd206260006eda724280a2d479773c190361e24ebea777cb88cec08b68a9d339211c7078a2f326e2a686fbaf05329bc03d8a4a2cd70f84ac721bc52fd76f996c6d57eb320e1f5e59b40efb6c0ac5601f432d027467d0c40e5d02a888842ded2fb39588ce6aa0bc8074835c16a2d9446d499b42f3626997210df31b6901fbb9bdc3ef7b770298f7b61936de2ea418857115e06b2fb1a7ab2be0985a788521fab6f1d6e048f81e794a4b20211571b5276755ee61929bb7c59ce1d9e759c1386811eaac9f9cc14b8fb4ca7f3daa25b5299b99730e422b1b0b16d23f706b96f8ec9c0c4f98b55264e6e4ca07a5fddf9dabe');
INSERT INTO refold.stored_events VALUES (50, 'compacted', 50, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31302e3030303030305a202a203337343630626531306332316263646432353131646539303331666565356635313364623434633034393566656632363666356634363133636239346632623320306432383332363761613463366630376132373539383966643939613766643566303330376238383734313966653537666330303863663237643838393038330aa07befde0717c7a886b5166c38e48f0312932c4bf00508d7a20a3e63c432c813ca9f3abd49bb6d249ce51e3a77bef9a43c69f58c0918e9ebc237412fa33295ac2e030952530ee30e696be459cee2b8a25b25b5e4fc07ce7d974dbd4f0470d9b0a698cce3c14e51cf694d8debd7adf47c22fde1cdead57c8c74c2c139c494f80bce6e6308fec9bc08d1aee0f59220bc74d29b552ab8684861c8a0fd66a9013e55120c35112e80383aea3002e097fcf0a7c24ec6ce2848e4884c39b06a488ff2164580ffe3c5b5442ad9cfbdb4296f20fe352fb8dda899d8d8b8154d44edd0fe9fc34caeab7673229875d92664ae2888e01b052f9a7a6e8b08a76f6e383eff3f82d991c2a4c7857cc542b483368a03530be2b6e1c5ee41e97687340917ec6e76b2aaf33ee5ed332ba7a45edc60fa47a28feea29ebbdfb91724d60da4d6c38a15b524f0cd6375308db7c0370a905dee283955a80c1360e114544c8bbc9f7f2b082d7db01bd9fb54004786a65666daff7f9cbc525083fbac94321abe75480be5eb09ea87ac1db5918474c293bb6706f1640e0976e5d511814bf483e4cfe1fc07457fa037246b63603c5f5b4631e68dd6d6cf129421cb994f698a1f43420d945ef3bbab');
INSERT INTO refold.stored_events VALUES (51, 'compacted', 51, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31302e3030303030305a202a203963646666393064646662356134323238343632333831663833666133636635323633643661393336316537613233666163373733666162356165643131313720396362613032336637343665666461623332636333373463376236333566343837663938393162346631396135326232343064366637316562333939363035630ac1621b085242a1e75ae4e727a15b922ada3ffd56707b851f418c5ed69aae276fd33a57fbb22d6d6f7837e0d63b04a62ce613f7073ab8aee3837a27190b4aa7272d81e8e935e1b87badb1ee115aa8007dafd3243924ad6828ad4bab27c8a5a63782c6be1d0a36bf13f3a80ddfe94a9db60663241372e3216a1ef39e5dccfedab8e6264adaba20338cc380ababc104ad51d65fc9387113c529cd265bc59aca28474f0e3624ca7ce780c3b569c477c63e38190cd8f3b66ee946a3aefe81448a29b7f5ce9570949fee80291f77f8ab9525f477da170876614da3a715bee25ad56cbd0d3b623aaa705602b23dc17df1d5c5c625540ab2c61534f5c8bce10244396868f6b99f2bb96b6a54d545f3e701de2322169f77447de09a491f0a55991ec7f15b1b346c69f0dd36eb5e74c5fcc666296bc619bcf838027e5bf0d70b98f4d74ffb89d6d640b2613d8fda10e0b4ae52ca82471f744c1bd16143552f69df110ade801fc4fedd65e3bf44f9883863ad0210c87dcb8122f558acfd6b7c143dbb656da0453f63072d577d8a4babbc991e0937940680cf5f0bd2dce04009424e1cc025513a64cd5d879180d5a1a02bdbf77a1572ba9f35eb83cfdc47db986f824609');
INSERT INTO refold.stored_events VALUES (52, 'compacted', 52, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31302e3030303030305a202a206432613562366438353538663235303064316666666239666563336636633232636163366363656461666462386437366565633463616265623132613232313920663233623563626137613830306533393331376133663766613337343163313230353837363261623338323331663963343836306161656333653032626434660af6129d3f7b5e3685834214ed278d1b7c219f4c2302a5ef5e268d8b37c5ea03618cc7857e588af801261ac3f43eac61b467f84705d5f13a15cc971cba03ee9dffcbb47f7af5305477cb3e01d050980bf982ce5990432c42d4e6d46aed351da8cfa1bbd25f9670388bd38fb4f5e12cded38c31bd554c1e2a30e4fe7e4bc921a0c869951f6fe7fcabc39090528ff8020ddcd7f12c272a5694d19e2fb3e570df89755223685dd75a1ebf7156bc79401f91bbaa5004b7d86dfa6e059d43da7c40deeccd01dc017929fbb0f447b31cd8a66aa36ea45875b8890d230091d4d89703cbe1a850831691766d696cc181cc65fa64a47c2b81322ae92320398d7f84e0e1849043c2dc697d28f0d94573ff5701aabe572d93f5a643992c6431a6841eb0a12385f6167761fc8ead84e864091fb02fbc170e55e1786ecf52a756c070642ece6246cbe2f1f5fb33b91dea32b036ed50c4cb0b86ff260c79d4a3abb9d4346ca97b88c1da62f465abc4a513639fba4aeccbe6440559752dd9f13cc0cd72e8435d2bffec93fba8291a7b20c5fde761bc442144ed194a84294e89a4dae7b6c615e876f33d1b37684eddd1ebd6dfe9e15c46a6244ad610f1756457d82a8186cba5ee39579a');
INSERT INTO refold.stored_events VALUES (53, 'compacted', 53, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31302e3030303030305a202a203631303339646534353034643561303464363538323262306234323834353830313164336636663165643434343834393732636563323739353638316236336520313535646131326163643362646661633130303465653831333935306337663431353864656232666566663036303839353532653662383032623530633432650a9a2dcec07e083e62145d786812ab5a428515c7ae105b2f563de65f0fb097e381978008a0bceaef0240cc2d2ab3d3013ae2a85a4f87a087ff35de99854bf51f9a0fb2f9494192ae7abbf94c547786dfa0060643bba53f136a9cf8bfc6713ff3f7dae7650c5711ab064bff141024c89d5c913592e72b3dde7bdf9faf43101dbe2ba05ba2029d410961e48afe00401005b88c16dae478eb83cefe701ba729e4aa072a0c75333ce15f0afcffecb26340eb19bb6c7eff4a94926788bcfb98bac47b9708ee52ee5e58284587dbeea818dc8963de10612fda96c4cf0cd518e32206363582b5c4fa7560cf74e62eceadb950175b843c724bf009429744306b0c445883144093b16b604e14eb75e6d6e6a04c1ca224dc3eff78e61d995220e50242d96ae176f0c7c480453f32bd867afb471980e96a79dee7878b7ee188353313ae962c4bde0b7ea07f2b596f0750eee4ebb8a29d0f0c1c120ef420a47c4ec1fc28a2232b3f42702ae4d874d0fbcd27ae7fae37fd94227f92dc92e42d356b3a586b9d31dffbc0e12d72492f5334e4b79a1c8f1bfba85e7e1eed6a7383f665d0651bd1c76b43f2f5c4f07ac793a511e488b5c77ce628f8a98943f663cec3e8e4a55398');
INSERT INTO refold.stored_events VALUES (54, 'compacted', 54, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31302e3030303030305a202a206531623532343362656462656339636165343862306633653161646237353531353430373637386366636636373864623563313434393437383330623761396320326262653935366538373165386630316634356430643961353338623662653635383661353965646230306134346133343862366532643238363263656362380afe866272efe18b2b719119a2f48d7396f637e179b90edc443f0418a0f58d2f8c0f2de3bb7cae92a7719638ed3d83dbabcbb48d475f25f9f8e13019be508185829e24715f9f66446fc5df8a417e399ae08efda3a67db380305bcc8a1be61c580ae913ebb168ed36e5d9a38c8854ea445ef6c269b5773bebb880b570e7465967d72451d0c4e6d1438ae921864ff8b79069f0f7891c8b920143bc2b797f1c5003dfd62302ef49c5ac665f60a14f4cef7128b41f5b5bb68d61f90cd7b5815584420be409d3eaf0f1fc0948b0d7879eebcc11f68ff6c7499606c1913591a23368ed79b1848ec6b47fbcf89c932b4ad52a124577e5b57693a8b9bb5c5540e7f2d7835d29c1b482003eaecaf00f94d221ffd12e19433d90d3ca657ff29f5d530aa2e56c32e7e4b6996c4d077708dfe24a58f6aba37df23a2d073b4c59b8aafc3a5c261491c2441ca2ce15fe22ae2fec659e77ba12be53d2c0221f583d089a64a21c5ab600994a13615f5ab561c1a5e84435acc244075911debcec2ea4c40a2db4246dc10498fb362572529052797494bd026c7b4319558372fb8621d56a0e3e72e49c059257322c4f1e7ed6f87c49b2ce6bbf6974cb0b1bbe7014175c730601b5a0d378c4');
INSERT INTO refold.stored_events VALUES (55, 'compacted', 55, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31302e3030303030305a202a203061323439303932336431396234396237316431306137343534316230336633636239313536643062313534363630316163376232333330346261383863366520656433346430323866626562393839663331386566646666653962343136663838636335616164323833326633316233653766356631363430326139363536660af26738b7d21b0c4bf06be7be212e70700ad6e71e1322b8216579a92270645fb6744e6a479bcadee1778eca8cebfbc348ba157c592270dc66287afe3f90605117972c468d186d4feee596170100a05d64002c4578dfe7e2db8c80ee59ff56004d96e3235e891593fdc8dc15d697ffe04bcc57fa30ff4dd29d7d067402b17010759fb22ef5556057203917d5c4d98bf4fdf266a30099b6711b36aef92465b1896cc625ef4a26959c922581d08ba9aa6b973f7390d07d44a1c7d64b328f2e76cdd8655ed2833c28cefbc6e2f500babec3c4d04de21e6e1785d0bd700bd28cc21c38543a0b90bdf99b434b5fb00e6ee958fc475e29fafff2e820dbfa8efa42353994a4396c5e89468b6b15a4a735ad0ff429e0173448298e04473f53e55c3766f7abc8a7018e0937d790c585a2e535353f44a136c6f73adf4772e87dc5aee817dd20d1fdc8c809b3ce98fdaf214a0c22e8672a345c3b7824c2cc5a1e1c61e1efa49eb489aa1e924865093d8d856d92037bab78c4025c4c88eadf6cc4b63b95fed9fe179b5ee7972ef3f81c9a61b71857ff7cd4dbabd4e858f09f85d9eb4c5d07ff6a8f370b7615667848a0b39cc3dd01a62adde16cf62602845af7ed7cfa8a05');
INSERT INTO refold.stored_events VALUES (56, 'compacted', 56, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31302e3030303030305a202a203866316436323462316438393137393033353665666661323038666237363061396236396436386633366137656162633737303034333739363665643665313320646535376131623531313163336430653134613736616539346430653664313032336332333764666162643663326565313364363336316364663032623364640a61bcbc5d0676bba1ff4d4c2f777f476b16874a89b779a3eec3abbbbe2ba4e1a6ea8a451e24d885a1a58609ccb75bbb197e455ba6d65ef49eb4a96cf2fe5dd53dbd0de32b8e8798d1ace21199003050a166ecf7d855553ff80f411b515b2a902fdbcc7f7a703507d0d249964e3c2a2287ea0fe5b211a53d0a73ccaa04b973fbd86ce76214fa119cbc144b72216566024e9a11ff0af641e2be92ad14c47e686fa05fc8bbdb98d6430d22d0d6dcc2334a3d38fbabb2ac8bf42dd567e45b3f48fafa90d3ab18d27a66b4b3ad0ab1e9eb45258be79b96ee4cfeb9bdc8d01eb630c4a0ae92c8d514efa86e121c1e3f015f80bcb1094e5ed29235d7580965c8a16d4d9a925798d80bca3e81a50a0d5f5b8782a858fa94fe48503cbefa15b315f3a6e6642730918bb0e3e3b55d71524e601e3706145c5ff5d09a502abeb19cb5e97db726b43d40714be93516cf803ce5a55af6830c40d20e7251d87f69c85ac91ed131bd1efb7812e837f46753d3041df206d75b679d3f32348366dad0d988bffb905e373bacca33d5d5a72a1c5c7c1eeae5ce02e29e533a77565dde931cee0b8d17b3a5904e0531023617dfc79d3d7cf502bef69af756c6729e43a35880b01051773608e5');
INSERT INTO refold.stored_events VALUES (57, 'compacted', 57, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31302e3030303030305a202a206138663663323866643366666131613637643333643264396230656534353030316430313537653238393634623462343263343962316438306439343063633020366161383834653130623362656635333162386164663033333838643335346363383532383365626464656130333631373161396430643339303131653335370a2009dc3cdefc68fbe73bd90fa06c244aa127d71e902a2b782057958f180be8332517d5f055b7472d28bbc00b10ff58fc7df4f113405664af3486f3869194588b50ee755eb0706b4a177f68af3045871d84609566005c7bd5466e0b6bc1ce0499de00533141a0f0e5e804fbcdbddb9dad02374e9e4bbc6d2689b93aa044cf024e4bddfade5cf83f090ec1b1c4311fd361456aae712e1186da7061089c4866e824a9aee1db28ec99bbeea037d6f41d3b323ed761915de2ae07044f3bc686839f4cd35a4ce1efde26abfe9bdd28260cc1ef577edc2c5691fd230b8ab14dfd84ecec07241694bb74b7b87eec97862cc56e726e5d6b63a79b32b8009b0570d074e1c530d0494388fa5a1d880da086a42d7d89ce2b8c7eb293640f1726a2fac8124afdda8dab9291469cc59845692274b81bb3f1b7ec55b4aea03dc0742dd8bb073982944bff2bbda1f408fb61548b5fa271bc47e60e0685528ed3085bdff2ca27d31d9ad378fab5bc116ca1e734a9b7dbd1ac74cac180146662e9894e710b33aadc8dacc1b51e63a58dcf8e6079538318378ae3443aef5b5a5f6d8de381496d5606eeffe14af1867b1cb7d489cd2401c5811fc9c8428d983c9cdcb2f35bec9f85');
INSERT INTO refold.stored_events VALUES (58, 'compacted', 58, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31302e3030303030305a202a203937323735363365353234643863343933343466633266373235396661396662613936326466633838646338613130326533363630363465323432376431373720333533303534373466353966613764653631356534626331376331623334346531303635646263643238626361636165666537363133333164653266373163650a1ea138bb127aad8b274cdf39395873bfa40c53a75b644ef38b76f70ed0915a4f81de824f1c6c7542e0cfeba55c9f38f5a47d8b551efe23e0d088de7410a0a7c2f33911317a3ad08ca673ab54fbb1c6cb3099de40ceb48e42e9db8a0a12df6e713e54fc39145271b12279471309ffd74ac995fe822ea568948e5c552351a7884ebf6f17e061980e31a86d20738c169d618cbf0c3c5d2d00e75dcabf8b929f19dc0e8f8b788c7f86a294f3f89816ab83d31e4868c7c292f50bb50b8012a0b83251d4660b8a95704367f1e74e41b2acd630c4b8624cae8dde4dcbd68ac61cb3338b12be0f0888061671a27a2d25403561ffaa4ccdb5d0a46146245973a65457a4f3b878ebf126257fd2798f20b231318616684907c1b66d862d7f3d33c9f1ae435ce15fccb3c8d2ebb104f986a7eeea203a3b34cb7efbd414da5243b868f5590ac7216c01e88962a9ce8f296e63ccbdfeccaedd1719e6d467592486b708277c29112056339abe5741ff56b441985c76612ddbfe20cb7a861932d5082961cddeded4a7aea00e00765b0d1d46618b8d8780573aee7c2e49e19cde3e6671c3418ed5027f6656ac247eace4d3475273451e172e20a65d6e9b3c14cfe0fb1195f684fe1200');
INSERT INTO refold.stored_events VALUES (59, 'compacted', 59, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31302e3030303030305a202a203066386463623638313863623563356232333763303435663061353037313838623534656263643061646537656333356663656666323237613433663338656220383465356464613539616236626533363136653331393330613130336266663738663062326333643037623037343161633734333834643763383133616537650a759b5163e6d71ae2c9a0c02ed414b8612dcc85f98d9873575a53284cb4b3ee482623442d76d3ead0caa82ab6c63d39085451a6b4ce090471c30bb1fee0a562d38fcfe10bfa4e04bce504db8ac683a9c50a91122f0b01cc065966232f8f8bc40ddf975feca636d1078e9d5697bda991332e9131d579687900bd3fc775d61521ee6ecc2a33959bfdd31efeec63f57d53b849211579d5a1e8fe552ebd8b3166527015f3646a55444f5014fa8741b4e3ac797658539797d246ec34609eddc8ef6f24b18943a0364f3fca3eb8f48e6f9e6a8d908cada4035dc90c52728f7a9fcd802e6693397986a799425e0b6877fd6501e049752260b18066fc1001ecda687163556ba81eb9a2dc75f01f18c48141a3e94b308e0f79f96ab438903e6f043e1df8af7b70edba36c5e2614633fc5867d8f1957ba08a64ede4fb453ee733170df2f739a7405ef0b5cab1001ecf303f4b5bfb84ff92100c13be7f3b4fba8342996120cd538545df77874124a98684d5b4e5b615a634ba2af1e9b694db167e1eddff74fc75f843808008a27e94c13a35e9485b9813d77d0de7cb354a58fab8c9cf8f9e913317f7708e8c0f72eb6ad9082c5487eb1e8dbd579c8ba68a2691a31cfc14');
INSERT INTO refold.stored_events VALUES (60, 'compacted', 60, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31302e3030303030305a202a203062643633613934653733393964393761396662366634303035383336383832383330633333323161366563613062353235323966623761326432646266653420353330373234333231633662363732653337623861303364306338323063613239336239363731633164333237653664663534313261666132613465636430380a3ef32f12f2388089e41ae625fd584a6e1c8b2185b556bf655c17c5e126e357169ff9619f5edfd800c673df51a3d7bca2ce5feba00fd11ce955a5da98583950f7032a5c037453891e32bf3004d6cfa3f41838783792224e990d51d3e2a7d7d25f841b28b48048ed9dd0ecf7617ef8a6715069bdfe8396d32651834a6c15bc8d6bf15e3e9aecf9e904b605228fdd7f9525ebb5ab6a4822149bb43311a4a2e6adee11eb8fd134db397e9c19fabea9c28b7e466a0373335e9d0493586500e6536bbdb0963b467e740d23860241220d62d59abf7507b61dc999497a382608c00b84ec01a5aa31383888b7e6898243f1d74ba1a7f1a969be80c812001a20da2c15f0b637ad6374fcb61e2ed6c1a13d37abb0d34108f0ea8974e44d584af6d4083cf6228a57995365822ffc44c3677cb8657f03d99d643d66a137c0f9472f872a5ee881a6e9c2791fb10f72b3fe122216636b6f987edefe6f8a5b0a87a6c8e2c74d72c2e61debeb31815b9d75786a8fbe26c910d25563b4441365285fd8098e5bedc59a8199f9ec07788add0d98fbd48af94d5322ecfa2e3d0cbca674039fa4ec98ad3a7904c5b9678d4e842ac17eb27165bad17d6d749a92c12e75418f0c708efc35103f');
INSERT INTO refold.stored_events VALUES (61, 'compacted', 61, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31302e3030303030305a202a203561303562366236386261336561383339666665386633356230653766356664313266336137626435333437653739323161613136346339396133626535323820303532633038666566303636653334623864636234303863663137653864623462303731313335623639663763363562646166346663646237316566643561660a972590a65aa30b9486970e1da9597a3c481a5c076078fb9f562b70d3ee6ba8dabb6bd39605789b1796e29c58da586f18691ce114c88d42b161eb99a394172e7e595410cab7a3dedbf8854f9e9ba0eb55c0d688afe887b072299100a4aafee0f3e617cf53dc640cd42bdd5a40be304e073fcc65fc597abcffce0d560b77ec520b89c173769a0dd8531d3d8723fabc35d97ed144dbc91a5b6d18dea2fb6401380e2e09e379ffcf873da401e8aac34f28292e76122f1162e0a459d2880cf72f767bac7665d6e3c2bc330504fe179d1da193571e3022e946989aba3701c67b1a064f9b0496d69bb3578e06d228614293c1388785db6446f797bd83dca2239da2bc92fb57662fbebd113f7b59af516839f483454ddb56c70bc0f680482f216f063c730a8c80acf8e1d79ab4d46f9076e51d76cd960f51c9632a6dbeb46d6705b56614ba7802984e4e05a9eded7864f139629cfbbd5ff8a52e572cf7bcdbd5f8f98cd6275e8afdfa6b2458f663f090acbbefaed914f2be4d36bcb706bf0e204e5edc9d088b2f75718be2c2fa15779c8c7f0f2b5fb9048a4f9248a579cec09cabf125f119aa96571778f22432b85a45b9e9e0e948f8444f3accb7637c72a2d7352c');
INSERT INTO refold.stored_events VALUES (62, 'compacted', 62, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31302e3030303030305a202a203334393830356633626436323433336637636431306230353835343930313961323934646236343365633637333134393931383031626662323631643161653520386630653132363032303937366264613533376634383333316333636336306263356164616264356464613634396434396664616133616566633635306234350aeedede3c1cf067eb698800bb1de0ccaaa9eb4594a4054fd117190084f93237682dd7da95f898d303e87cd4b13da1f584d16aa6135fc6d4cbddaec9189393f4170c263eee0db0c59b785cf265e8ee875e76d0e40593a312677f3d175999f35739e603bae710fd8c176539e6b5e4da36856bf806a2deb5434b1900a75248c2b3340e1ec0fa8fbb7ce8f04d041caf56dac219f12df3ba67b947c48ad2b0f1c50e3264b2b7f8d44932162b516a79e1e064c90ed3876f21bbf6dd1d21da0b492d4126e47276b2e8bc1edd1838ab9f78e89e8aad47ed5213a3f2af2b887c0d5d5c03c3e45c8b35c475e63d4fe87dd53c337945d296fb75b2fdba63747f9960541275577174ffcdc973b5785d657c307093bb27659a1012f6f371ecf04bad4a2cdd0bf7c02c7d4994b0b0d839e37017d8b8684cf49068f95496453bdc18e3902ce21d50267911182d559730283930ba2ab5b832d5815ccdcf3964845bb81ce8f8aefe39554695d14192e1840d5d3f815959c4195b9bc2db0a8b364752ab0822d7422055dc6508e23ae5cffb829208c86db2a86195941244184a1873b59335a5936074a13adf57b65f92f4dbb056e231b2af395ca08d669ec9a0b58cc887ef1b614723f1de');
INSERT INTO refold.stored_events VALUES (63, 'compacted', 63, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31302e3030303030305a202a203564386338323339333031373663303036646130636266373532613336396531643061333663643166306363343562323735363432643339316531616165343520613364633638326332656639323162363563363332666238323162656335656139313463356264316130346537303239623862333062626434643732393635330a6dc948d32ebf3edf404b4c1a83dbc5a7404cbbb2a5629c4f54aab81b56322fd57d9c0af4e2e6d19cc70733071118fc83f84e4b20f00143b6b94e4f413c2dfdee06ca615c98e925d0053021604652cfbb2a089deb54e1ae41bd92f648de062f6d83571036997619f272d53887e8ace7114c731114c0e68bd2de75fb24381dbeb614a64b47499be8c787d964178efa7888577dc70894aa111af216ff903a30fdf24451daff2ba15a5587d72fd8096f8f3e944d3c24f69adee18ebfb099aab95dbf5ab91ab75b1f3622b152661cf2f8442032f3e44b5dba8107e7ffd4682daa14af7730359cc3667c8721e32f24c32913582a071b8e0bb5600ae1f90305e403012111a8237bf9ae7321497534e988a9dedfd04c0c6f4cfc3ff2387ffebbb4318d7851b2c624f45e42d5e9caee37391d29dae24e3e617c377ff166d04a8931d4d15d366120d81c10b5bea8de071765cc5ddbaf9f41a36346f99d71c282eb4916ab95df9f8553c889d49f10bb8673999184171f5fd8fd182249af230b988a85f86eed68eb534f1762c65a39322c238e4bb4b097a2fac4e65efebdf3ba09e0f226303f80be8a5b6e8e20a9a640196673da146a256611193e7fdda9dafdca8e4572c8');
INSERT INTO refold.stored_events VALUES (64, 'compacted', 64, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31302e3030303030305a202a203030643134313230346562656536393531623466323364386261303261633731316435653532316139316237363330663438326365643932356331646461636520376436353763303238393165633835346434386165353030386131376466623339376165636561353466363739613137353530336563336439366233303238300a36bb97b774ee6bdd05edc3da69c4006a67eed65e7dad0203f23689adef3ec1a69209c072fced877a667abd4a0472330d346223ca4486fba551cd4be98c3393250b92db3576aef1267d9b6c1e04a05d452c988e14e3730131d0ecbc922baf19dde3ab26272708f2a02b1462461bc12cd766de8b1dce0dd975c02bc678b200748b04db096335382b0418e365f982f439aa4e387ad88fad9f4145eecc5cee7f33f553d71c8dc7d6729ab1827305c65145b170e19be2ab7295ab726c796b35dc7e74901dcfd8ff0500036af0d862a75cca2486273e63079e38d3c1c319dbe7d7e7102b3fb52122b94b6ce802ccf86cdf9a8433ae9dfb7de0ec9d8f171514997ce6509c073d0cc0bfc7e3c1581935b92e9240da113e54b2e9e880ec61f3c05f6c65a8d2fd9db63094be3b91b512148befe862270db796ecb66cd42bbfb0c934a760f60561558da39d16ad1d5fc4cdad1839f4f7a38f73f3a882c15009d6c1e34ff2ea3d03ffeec16ece775ae986981bef6addf9deb363aae42ad0817a2ec8812d368f00d2be6118ff79eb8c5546a38ecfc9b1d1aebc9b78bf9e13aad412967f250ba51a39384b4f39ff664cb02777b9b7bca99b21e71ebb3241db9cb83683249b7af81048');
INSERT INTO refold.stored_events VALUES (65, 'compacted', 65, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31302e3030303030305a202a203861393838663836353930313966653533346466383863326435366434373132356339666237613530396236383361393633306364346539623731376166333420643135396362663030373365633637393632393733616434656635646431623862323233323838316165316366306665653234396564386632336639653736310aab4473584c465c0aba7daa79bff334aa2d59901cb927f5863185bd188f9a26572f19ec0e41bdb07ec150d91b04f43c98cd5caefb656d5ef8cf5fe05fd13387d6da9ddf2a1b8cac02044bbf85a59a70ef89810eb065f6dd07bdf50accab454a7a96cf969c8c9aa60d896bc02365511c204c865389dc1b4910fb2475453ac345e374ee2ded54abe075801d743ccd8a1a47969466bbff0ddd194e614209b51e0ac224cceaf6434c5c24762c428ce3a2d62872099596bd9c3a3429263a07d1d267194cc960e41008dba109f0555ced2d266037994509c955f4ddcf40786602cff0fd1ac03d089b4f14b7c104527902b849e911afcf03adbdb6539319d6ef12fa1aaf5f8bea4e00eec685988c30ef290ff821b989c92251adf246a371ca3fb3b3e403a978aacd94036a4b8946b1ee47eb7e16c622c29b9e82eba634d60c7c240503f363723d6524768589b642384223d4809d0b49136275cba9cb7652137550edaf3cad7350cf9c83dfaa1a184df284f7db982749eb0461103721bb7ed01ce7df43388c9e606fb437c2d1f5ce8e5593e1b5fb61679d710cec2b1644bc547ae0b2de84e0526ff62fc2eda3079e317c336e356112c331f1d34fe8cceaa562dcfadef4');
INSERT INTO refold.stored_events VALUES (66, 'compacted', 66, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31302e3030303030305a202a203839646563333362386238353936316432633266656535393566666330343833336165303662376262623261333532393863623564336636623666396336653720636365653135383231656630306236656566343333363364613334633462303735396530326162353637356438663233666134336163333164363835636333650a9bd68e4592ee41bbc91b263487c7f287afcad7c8a4cf727ef2e9ecb2e9641bf3488c4be81ad2dcc048e6b2d69c9093fdf8689436d6385dfdc429e635ea9db6445ca74e298101152f682e246edd0b05b84a35fe1ad512d75c7997130af033a4683fb332a9b380a7daf1835513be7166b75a8a136de12f465d30bba5646dc790d524f44f54e47fc0b08bfed69bbfefd9126c75c8bd8d4832589876ee534d5cb039ad1e61b7aaba08faf4f555851c30ba7e54c2e98a1d13d0e0da335946e079b5c3e034a4ea34b3ff695bd0ff805565f48a06fd5061e5dd3bebb265f7f90c0139aec37da4689f7b0d5bc58288d71e4b8fb57a1ca73aba59542cfe58ef2b59fff57a873d3f82abf3b033dacb24ed9000bdc912b17afeb6d9a08f9f0cb5e24722fa2b70ff385fbb9d5a7e48ee3d45a4615bc859a3d7fee92f6d9721e9b44b2be90361ddfd05190c7af6eda09df43090f92829ae93a6f00266a0bc2a55c8e23d0355f5e61ce42bbf41baae418d6b3a444467c1688fa369603bd3c24e50dc78172f7ac02574c0f44b370ef69d191a207dafafa079a7bc880ca1e2fe9906aa0a1068f820586bf735bbd09b9fd15925ab1d30b7f5fa0544d2c484f8486aabc35d8fa7e5dcaba8');
INSERT INTO refold.stored_events VALUES (67, 'compacted', 67, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31302e3030303030305a202a203534306163363364396437376537383563376535333964633062303636326163613234386162336631336639313536376465663765323665333565343236343820633035393433386366393237353235323466313166303564363065616330363733636661323461646336313230663536333336303066323335313535303938320ab6d86feba297825a9bd8945bffbfa85db3925c61a5d63790f75b7a08a4c43a635a4032093f9690449de09c61aa0c562a8279090adc81c021add58b57565723226266ca27bbc36ed4f63fa01e359c5e5682760738189c7d42633e822ce2f97283780c5cc327818e7d67efc6c8ca819177acb90161233ef26c3fb6c5ea77face8e37f867417f5a415cfe46c7bb8bb8d3e2286ecf0ae2abc5945a7e2011bb68b147ad0290acd3a0d31bebaf0dbb078259defda48dc4e2a8541a9b40ebcbb217e8b24231250760d5ee39e67c8a61f966891c7bc0a99ce25bb78738b21f9fd5e417fcb867b1f8d3423c5a6266e3a762e8c1af6fae7d935f574f6988f3557e7825e80790de60d2232985d906dd215193cbd69748ddbc8dd7c5415217b189561db6d0c64ac95de9323da71d02e5241a818dd08435092487f6daf797c9ba4213bb80d96cb70d90cedb28fa78743f4c42d47b44009123205b63c520b9c22cea4b7ae4fc9a8fe429dfdc2d699e206987d27e2927aa589ce7db5e30222e3d87bb6a97ceb14df8051edab8024161d2dde4248702920aa9f560628efd84da1117528633bcce268cac68826fabee491c6ea222ae2ba42dec5fb49c3342339212c34ceda47186');
INSERT INTO refold.stored_events VALUES (68, 'compacted', 68, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31302e3030303030305a202a203166343834303535306236333835656533386362346335643162346334656538336531643839343062613434326630626230623530303939353838636130626220643430613964356338613963353830633764336635616437353966616339303734383965363339323436343935386632653538393038333537613933646239360a9c54902affff6349768a689ace49912e42db53a7ec2e3000c10452da6a35345bc39c0dbfd52a6b9b433a303bf3626d09d12651fa21bc9e56b7b190a8c159fffb3e7cd6e5174a68b9bd934578c28472c8b826e738877f263252800de54734cb1875e1838d47ee2d9f6a69bcead4bd96d62c3dfe76bfaea7d4a462740d871ca50c8dd1057741a668777df015c477e4c18a12014fbdc62509f831832101a00b6b235a28791fb54669665d88a736283ae56b20611d5aa2b23a2bd3a4f96e98657d02311305ce03facffdaa98e1a30c5019babd538ffdcc4efd3b99158f0cac07f3491535f939c0a1209da5e8224935abb6730124cf59e18c96080e7f94f5a02ffb76207aee5eef60b005c82be52f0fcaac5f19850edba5dcf3a4510b6ab81feb9f2c9ddb5216296fa795c09531ebb158ba2acdeb5c19d9ebe3a655d36911071970e7e837bff0cac53cb970923b56d25514c4cf861b42f35da23004c239ba2221523d81a3fe8567110dbda7844c5d27f58e722e25ea5f9202b6d77c9c7048ad0fb705de0aac503511e75b1e1da119ea4ff35cee9aee27b682943c2736dc82aef5189617db9c06653f8fc23ede4ca65ace76f7cd14802659f2d7ff02b436220616f3f4018b');
INSERT INTO refold.stored_events VALUES (69, 'compacted', 69, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31302e3030303030305a202a206436613466346532643435393631366633353263646435623931656465356362623935366531363236383738303165666163643334346138393739613938303520313532396339613066316161363232616663303937326361626464353539353662613062646163346430623937396533666132303933353266326335653036640a8ee0497f09f9b225dc77cd2e330536cb1c3f4d64ced8d14ca7171eba047dbd3ee65adcab732afb3079357c3529e9636337fc3914b1a2c33d72be9f7a34547e23267a38284278a2e7b3f32ccc4264859d4102d9da3df8d3835defff56d75ff6ae4df5ecb0b7e97882fb23d118184602367bb0394c7c8d59a2eda12a8b8806aa484ad2fcc0ca2c47948cf494dfbc54e7b19df934888ef19b1614fa6b1ab357da430c34c22937a69e878fe0feb9131fd6d3dc81f53f646936133c4a66c6ee4c6109b7c557df1d2a397380d03a19f663016fcaf209e6b51cab89c80d877bc1398b663cf2ccb235a17a563644789e305fce07b0bc3d5d00cbdb2d15a8ab534f2f05b0262c5f6d52efc62e0adadecd20208cc9cad4524a6fd2301569e7e6700bfe95b1cae07ffd77f569a15b5b7e4a7d59f1cabae19ed6bcda7d55cb67c7c8a112c94f79048ff7360ae93911c4902bbfba6d84ec5107f7c0420e648ae4068daa684f8f3b8d144d194fe7a090476385c423fab7bd21613e987ea2a919fe099c64c25983eb494636ea2dff7d2bcd9830bb551ca3c33eb1fa7d6c31904c079d940caadb7740130ac230bb7de2bc84b6d3cdb2b6fddb106b1a3993995085eab6957fbfdb');
INSERT INTO refold.stored_events VALUES (70, 'compacted', 70, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31302e3030303030305a202a203332323762633564333662653666643064323637323534363436303866316137303837316134316330616631333863366234333364663332353432663734613920646464333934623831373963326439356365346634363762613539666261356362643636353236353331346166376335303834623332636432336632353365320a7d77644a55251c0e4a1c6a66a4384a0bdd8055c591f1ea2a55bde2d677177bd0b38cb993bc9adc235ab0fe1f8f7e5c124e8f0f7b5ea1095207b81bc4f8069b904f26f15d99f734c4d3c10b97e6b0d69138c0d0c79b19a5897c0c85e02157831734a9962712c75014e468ac3ed2eaa3645c3a94a59f136a250e504db6cc1883014e0657228eab8f576eed68cd3accb6c2bef5938066ad8fc76bf2b4518b76046fa41d099ca318b6401286a7fef98ba68d5567c466efe1a71272ea89ec99084f8bcde9c0f115a6ef4f9fc614d401b027d0f9dd6efa4f57745180795ecaf94e673bc2406db42a6fad5d331ef40c76bdd90b47e361af6f4aa154a57fa315234e6bd042a80f1e47cb9af4e4b2738cbf89bbdd96ddb0bb15e79e34bbc26cfc6663603ae7b9d527dd1678e5232cd8909979484c74506281f95695ff86190c3ddd2f17ce801db439e227241c549741b4c632350d7bdb1a1cafa34c3110129ec87389e24cd30887c1b532700be89a3e5559f91e38a29887f2422414a3f7402df6955a2ea52e41d7df1da45085eb089f0d232b3f0d7c6dd26b4e5fe5225325b444f06d2f77cb172942dadf500e3c963436c0b0cb7d37159aad7ab09bdbec5e235e38ae1772a6b1');
INSERT INTO refold.stored_events VALUES (71, 'compacted', 71, 'compaction_requested', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31312e3030303030305a202a203831636233386363616666373234653830323837346539366634313734346133323438313964303438386130353837356431366466376265333838393735306420303332396563656665303666623435376236623037636431636231306633346339323039356665636134343330333438623536613530343132313762393965390ab9e40c979f3040009d3605b991f6ede2ee17bfb899b7043dc2da38ba7e1a357cd5ecbb1a13ea4e08098b84bda52c0d3a4b2a4aa2a55b12407352b1a854aeb5d288bb2b892b9a0ca768fb946c843d9a361e074194a27c8de74b0bf0404acbdf581f6d5ff9e6177e6b2dc1577d4ea2f5f6e4dfa1de96277189a7ec8375987bbda8af0ae991b54bdb0c6438629d2f99a2d63660f2573fb5677078fa599a0a5147050804041804455e514047a6f452707aee7b81c942900061bbaa956daf51a7edfc618a88d73b7d4a10cac8d1310738187690c96ee8c79e6a72149b8184f64b4aec3ed06ee090937fe9c9f2d09908c280e0ae079593f632dbb635b65689e8b87f8fcc3998c16197b0fcac99ddd344eaaeebbf5450725e0dc148096ef0dd29f122c24ffa89f90a1634eca03f9f1f440605ef820b3ef0c874cc28c5aaa0d8cda68465c009e9937f9265b39ba6b1bab3c00a2c81e51681fcf30a5e84dc658543ce8eb77b537bba18d45a967e5665199c86831e2854194d0a4b6cc30be9d737cf878b58573a1e034d3caa9a0cb5d2fedd47929caa88755eccde6a1323acd9c170ba9b426d90c20b55892e508201bc8ebc36a5bbc497337f7888a9d4cd48cc512767d8fec309a43e167d5fb53d100c54fc2bc3d81841bd516d17d5eea9bf40b16e87718aa10353f0121adb223e1f9280faeeaf3c4cd851163df185ba412aca4ed5bb61db3366bacbef6ed59338b1a84d4adb8cfe83b3027db6869d48f3eb6bfe9a3dc42a86a36f7d531f96c876e166c775a9c1eedc5c8c584634e52fe35e4f435697d20c23e8c4cce8696bea6b064bba0ccb34a91cbd8a49a4b75fc9ba265fad41d8a402d964a02954a34951e985b3aace2e1fec62b56baa04091b1836ed6d44febf3c0ada97c0d9a831e018f5164cb2a31d8edb42fbbc81528a5f88e962d5f095e04bb60c7b29e28d35d366a0d20256f63075f85f39c692dcc3b32b9c32c4ac12cfa555a31a6c8a3e7036e9e38603e660145551');
INSERT INTO refold.stored_events VALUES (72, 'compacted', 72, 'compaction_performed', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31332e3030303030305a202a206235653838383131666331313566633865626336663739373636323261356536346235333432396336353030333263633562333331356336623639383461666520663735386433326239366539383164393430393265353965326232373131373435383230376432643230333037366437333932323361373134316136616162340a0f62ed3d5d3d5d8e1aa96de04cd673fa3aa01fa0d3f5e8a79cad9429de8c31c8c819fe7797df80399e37e733c93706e33081e87bc1d690e2881efb0ea542432f40e18e54e1c42d737a2722d44f687c69bae4697a3eca187e34f6e0e28abbd6ad9c90b12d50a9f280811c4e60a99cd5d298ff461d83bffb1282c4350a655d2c67342bc1ef6b33374c68ed6591bb8836f266536e24c2dacff450b3900159bc36449c5fa1948c8f6e97d00da8cf859367072cd96af95578409df12b201f87e6b536bf334bba2629aca6cded7be1084903ae7b19a7642bd3c6e568c8726c5f8966c61d1a2c6793daf6e12912fefb9433fb9da14fd761dc79bbee9f5e95aece616a99ab3e9c9493ade6abfb08715e951172cfce34563e0ed22c5ab402f93ed190c336b29194dab53132de076fe3f119d52b53602b9bcfa25288af5c92c13486215ea788c2bc4bdd2b6b6d04746195e93dfba2c2704c627a9cca0baed5209247b9a1072bd6c9e7485207ab3d98719a6a121904de7933299c2e7aadf92dab23e67d842cc9c07ddb78690c3171e5b187938d4bd3ec74c7264fc975dabd47903efdbcd24b7e6b584bad36c471386c6ae29b501c95e3b849030555c4fdb680c5fe2d70260d33172891f017baa0e1294a50dd983e264e37a227b77b059234b3205cceca7273c46a2d491c55ae2b0099d0de3fcef9579b993ec03c894667733c23dac6645af0612066860cde0b0e3d4e182ac48899e2299f5af0d49fe88f29c2b9381cf336182949694b7483ffc4cbb5fbbee8646650dce396a2251f1b0338b4051d245075b67a048ae984cfc51b37f37f993b38231ea33f040d1d0dabe4cf30d8601cd191f7719e3d22965964addd8cb57c678245a76b867f9bceec21ce82c9ccc6d9dde44a20e158983c4a388266a54e425ae025330ccf07f34fd4c7f2e808ae581717a75fb75ad3f573cc685b13e9cc3a78674eca1632bd44b0e812cf4f87adbdb0ff7853e46bdab6d0df577989f605231bd3a7f583a75c739062200e9577bad3cd3aa4eaa2cfa34fe3e4e9bf49bea82f39b79c214fcb4bd70a148b465901a977d4309367c6d5de43dadf401a4e09ee64bf0a301353cfaf5910398812d4b18f8f037bb19de9f6d64dc8ecf11dd2d6ecb6e687068b4d190248aad2a19159c991e08e59df47a7051a7223ab0269');
INSERT INTO refold.stored_events VALUES (73, 'compacted', 73, 'summary_superseded', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31332e3030303030305a202a203066363464386331626362373231376263663331393531323531363134343032343937326164356236623964396166353466303033616437393764353639333820623964363836666335376435356461633631376230356565326365616262646530663665353736346435303138323438613332363338323333646431386437350aec66af3a4216a7eaf3533703e41b78af0e683a732b75a03aed2d2c3efbdba5183af4843743b40feac1559912990037e73e501619b15220821373067e3fe078a574360b987be1df26b0ba6d78ddbdefc85b71');
INSERT INTO refold.stored_events VALUES (74, 'compacted', 74, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31342e3030303030305a202a206535356435363661313635366564633166353638333462336163346166316330663635613661373465323037633864663262616266323464313236643163323720623463353164363837353635373932363330633266663466303831386166616364643333373363323336666333306531613463633030303133346666663065330ae14dd9bb62987566aa528755278350fff1f9a0bd34a8e89f477c88c4064b21b1cff071ca71241344afa688ac89f5f1e87858a06028573327c93ae945b604d58037a0297fd6fb09e437815b5e2252e5551bd5b819323f7b045f228c1587719d61f06246c8b4616ae4d259845dea28f10aefa333daf896a2a7e19f2f711229b779b48b4bbdaa29666019bed54c634c');
INSERT INTO refold.stored_events VALUES (75, 'compacted', 75, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31342e3030303030305a202a203062663330373461343132323862643334643465366533303631346366353830313236346265646233623435663936663734363662386237343534386138303320613263643938653035616137366234353466323831363636636161313765333430373533396434333037326465626362353363303536376237333037366130340a83ae8fd119110b5e3e6203162189de5cabf1fc4258d0a1a181ec93b271d632878858b996f72546fc87d0776bd28ff6250516a5850c24a7d940154479db50a648279a1e16f9030e24b9e886810cb0d7e68534b5a1d32e23504a8ba3391dd0435b2a25c67a895b55b67c804386c2b708db5e55e3db29ada2fb44ab555a3bcd175ba095191973e1089122a6d0a0b137b8ae28051685851df5e3f71bfbd1b1321c65e9e57632bc98f96acae643621e9bb07224f4c9859d436ccf0ff497d1ae1dfd9409415c3c32d6c25894ff65714d0ec6cb4509370c81377b8505003bcee5131b818298fb89c796647d38447590873c0a61cd7d3dd2e5bf12');
INSERT INTO refold.stored_events VALUES (76, 'compacted', 76, 'conversation_labelled', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31352e3030303030305a202a206661306237343332316339343866373739313065373764666636623531336431306364386333613633666230373261646463353163393031623430613637353620343930313338666339663963613437333530396365306665363162663334336666323266633132396430636634626333383166643137633938643831396666370a4d9d1df9c782dbb13b858074c0d45c13ad281b52410b37bc7c0cab17d29373816a3e574dd7b2b6374a176a6577b992d7fed94aef00cbeef2616aacd66b6ce1001000e7f8efdcb6c0f95a9d');
INSERT INTO refold.stored_events VALUES (77, 'compacted', 77, 'compaction_requested', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31362e3030303030305a202a203731643733366366613661646235323665323461396133613532393733613638346537373561386434636230633161303831303262356538326434306665343020663034616132663065353738643538366562376238343832333034393535373634323236613331303065613039663537323137376537626362646661656561330a8cc243e55de3d4bf9a5e005254a9420d11814cce1eba650522f8ad36653b5c23824de2b3719ff21946ffd3c0351646ec509cbaf2a9315a33798ab3e93b244e1fb5cfe4b2c7e91109091e4dd85122bb07a6b68e579da4d76b48db15f8896c3a6f95e0a01f23b6741c5cffc229d4c258e70c7f355000a02c91910a73f223546df025836fac37504403b615dee3165be3f6bb93917db175eb0ae24165f046885fc21090e630a2d834e2de608ec5d3ff12de6741d7adf602b73ebcfb341a26cc9e0f110d69a3127035dc844c7be81bab7a0ea10008d4e890ce87d754156fc3e678c5620f5dfa74073d6754a99a513d40422c2f954a04f824584854b456ebf56181e88934e2deb4d41a50428fd3e0e5bb28c804051da597cd6e3c9462f42172218452234e8d3924ed6c60c22698a9ace9df83edfec7557178c7171f2929efe3c529f8eca158114d46583735b7960af89b20674737d98a24664994e845111e63838d969ba9762cc50e050d2d227583aac6754e3fe2fff08025e6ec314760c3d7bcfb89ecc04f4d0f47e17c07dd08c5900020bf7082a517c3752c3a750153d1d8869cbc2eb02cfcf49f19bd111bcc900992df9565e7f36a2ea16555b1f425563ad6a0e8b9a88513257fb1eed6d6bc5ec1ef82947cd6ab85d0ba3096d35a3a4f1017950107baff454f75fd81e2ff4e66ab90aa3d575e2865075c659269bcfe0f281490be31d696489683ac31eb1b2cb1586648cba6ca6df0817b13e17ae6ecbccafbcd9b6469b1fccc0e4b2603a86575e4822473a23171f12f8816d50063df92789638ef86d1e3739a5022fbf0c5090aa28dc31d818413145048d5249e2d8fdabde26708551a20c6302fcdce393af187cf7f15f39a09bfcc75b1d668aa07eadf1f348652fe04a5f97bab949a6359419ea9ca9bec0761ec33e9cae9eeeb38f8c84a2ac42811afc901f2eaeb33c1f10ec8bc4b302e1307d5993cc38ade7e53299885dac567ecff978ca046131fa312e3591e393ee554dfa1418dcc77eed0b5401d42059bba5122');
INSERT INTO refold.stored_events VALUES (78, 'compacted', 78, 'compaction_performed', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31382e3030303030305a202a203766666633646663616530613461616238386233633531303737373734363064313566313139313163323564643631313664373361613234623238633634356220393433346361343837623562656139613463373130376337346536393866666534343932636266386165363462346561336263646164343335656632356166630a534d561d863d759ed45381f5cd17a8458b5cf1d5c8fd53dc87b7d25b150d82cc4e4d5d0b3e9c265d02e8e25fac761e0861b6eb5b16901e8cc7a40511ce12b8c9c5add286713a7c842bc8b634b8a95384cffaed839072effbcc263c89ebbe785391d40adc45f4041052eeeb6219cba8d5349a876e4da33915d330a77df17c9e07ad1e04853d06a28f51b98515e56194990b01adebf8475015d9e3c82c48e5561794cad26343721022e5662133fa1f631a7c7122d8e89699c6ef3f8ccd47eb26231e6e5e7f4069942fa5b9310eb8879f3e68b58e6a47bdf20f7168da4975c37c9b2c9a96b69d59345e0aa8a4005ac3f4f221bff0543f942a9e508e462c12f8c721342d4979219acc20fd673e9ba64586b2bde21e24daa239f539591774f5dedde02b4c6deb7e962cc65aa1a65766006b051eaf05ebc7da17f096bb2ec7e10dd886a2ffcc5557a797777192c4402bc4d2aeaeebc36ab6205b8065128af4c70fef165bddc98b48708ecaa0d229d74f741329d9314e85e5392c6b5b543a96bb3562e15d09bfe066f3d498627a9d1c288d6430bdaae1f41cf0a148411efcff43d7f6e1f259b31f1181131eedd126ecb80b51947b0cb1e3f240db80809deb205db3406a33860a862fcaa4a9dc79a1705f4b47af25aac561fec594f54399a2682742bd538954dfea736f2e13da6190bbfcbb4333db12fc23ec259f1eef7ad021e3db5e55119a710dd7f984b13ee15f6bec2fbb14a271144073f155f868901154a7d772791db300759cc728eeb5f3cd3b8255bde70688ca535bd741f6f7fb60ec6fb4f807c4a55202a6644988351cc2b9dac5f2c4a564996105479f92a24e74b4de903a953d27540d5b018f8b95e143d7250814c0a28da1a8a855e4b9c870851214fd57c28ce8456b4130f6f1b70a15fc5ccbdc09db3248ed5056dc4815266e9b2f9febea426c9d3f531c0ec3c87449173afc9f08a724f2b377d449d1f273725fff4bfaca6bc29129063a6bab6d4457c6bddc789c39e713842b547f4a0e051402140ea4ce5c2e3b5f04d980526e63f56559f7a4ba3eb46ab044dbf9f34de95f44da500b89ecccf50794166566fd1bcfcc3bcdd2d4f7168f7349df49f9b4983a6f09ce1e5015fd40e5e018f6e80be1ac1f8571a35ca3c47acff48afd64440bed13a35e28ad89fbcb3b06df984d47a5e46a6d0c295f459b812e4d530c92f7a4');
INSERT INTO refold.stored_events VALUES (81, 'compacted', 81, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31392e3030303030305a202a203237643838353039656630633939366638646637303739333732616236343762613236613064373333663934616637653233663239343564376237346661326420366464303534616161353138633433336636333364386534313761316463346637326138336633306634313166646165646433383065336430376264313137310ab16137f67a5ea2dab6cccf22722ca47a0409f4f0b7f85a947610c1f7e8c37ce5369a82bd93f67da0e8eed1632734395b83960e11cf5a041e1f42a7202c91108c56cb41566cf05a2d2827bbed1113ee21d225966d5865abd9f23c3e3eff849b9cbe95cd7d2cac92c1a59715eab699759df0d8a9d5d230f08c1b64a75007a2ecb4c56bd21eb56c9b68b510abdf377102a99ac7de63be1c0f7ef9859fb29e980fabad3f7545144f0310ef6a1406e94ae09909d0f221ba10eb54ebf7017012c5791293ea74c74efcb7eceb760b623e43bf3edf6a3621ee1c2787be3fc3da63e2cd179cf12e1518ea6915846f292a2ef1edfd76b2977d30c18e52488d8e381243ec4a6633df');
INSERT INTO refold.stored_events VALUES (82, 'compacted', 82, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a31392e3030303030305a202a206530373765636632303164333966386336333736343261633263353633373162656534663165363234643437616134363462626662343433633539316238396320373964636366636562636563663161323030333532323730393036646333316163386639313663636232343431323735633866623836326564383931313735650a916db2ae82d4cc3c61ae3cf62b349eaff5a8b1305da48afe2b3c41fa95f7f08a4a7a8e723cc7e9361f1680613b9997bd9b421a156f8923db3cd8411a388d858dee69d113c514cd050918156e7dd2e5f4bdc144d7281fffa12a36d0e0da7b4017841c033575f9ec6cc0dd158b96974dac7f49fa6a80575213bf06cf0873889a265835055fd4b207bee2210c035a69800e21c931b87b34d84bf9cabd165a5ab794b0594654151e6d9a27a340f165737ea28b808e18a177d1fb60eb5e8fc22bc93e7f65bd');
INSERT INTO refold.stored_events VALUES (83, '对话 2', 1, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a32302e3030303030305a202a203939303137366631346333383432303334643765346431373232326235656363386437626431343634383762346366303432336264643435666135623063396420303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030300a05a01c9ced4eae1b835c28362b2914d720ba03eedea2d7e3b314d39015dfeeef8a1edf27a1fdc0b27af4026c316c167e86a26d612cd6d77547e76b53a7ba73366214e5c2973b41d04c5adb92e3e09e33090563f84161bc717bef32bb4e6c5cc5c8004d7c73f09d313cd42f1f5fb09f6eb20e0b8ba892f3e67526f19579dc268a2f2d61c9bdbfcce0ed563c3386efbf650d2d');
INSERT INTO refold.stored_events VALUES (84, '对话 2', 2, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a32302e3030303030305a202a206165613338333934613336333833643734626436313762386666383536613335313661633230363637656434376465316562626163656631383234663632386120376662656433616532633330353863613065646639343235396535636263326434613263646261633837326261373737643936363866396236393164393465390a6fcfd7b897e6c5a40fa548930cb5ad365bd7efd90cf98552786731f4d1259f840052758950efb27c5c257e34586fe137007754e91053a4824965868aaff920f048635cb53e1f9863aa12df7fb9c861c09d3b7970094b4faa50a50be28edfc71c6e7dff15fe172d516b6b35326b392a1d863754cb9b5ec701d93f2ec364285d42ec74b5d1551304ce33afc921a3b036db7866b9c9c5dc3af8bf4fb69f72a648678201c1600bfc39aa4452fd06077318978649035d8c32680e4d16792b6a61e4540c2a3379cf4bb24ce8893476661388e9e18e3f237868aa38d945cb2fdce9b7ae2c011123eb6824c0c99f975e40ba00a728');
INSERT INTO refold.stored_events VALUES (85, '对话 2', 3, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a32302e3030303030305a202a203664393538643731653230613136333236376165346432373936383465353135383636386536343465373932373434646466303531366565663863386139376620313864623431383765303838623138336561643831616330333830626236303833386335376432303238653631656633353238393863656537326332636666350aebe9cb282b2f456eafcf1850eddd6abbb691347e065cc279bc767cba120751d2e81117e929817bb77ba17cc5043a68e98ca377793a75a1cf867e0b66471e7db5c99c9752425c4b4c71d46fb748d77523a6204cf8e89f92be9818f73558cf8f9f8544fa5740d3614bc58ee188031f03874737c7e360a4b8432e40973b518594f5abf3c0e3c834c2cd95dfa0ca234a3d1a65ccb16e80677b71f5d3ebef9d37bc75feab31406d97c2d19f1745a84345538cabb747aa65036214fc147be97d2ee9fb923703984ed8d4');
INSERT INTO refold.stored_events VALUES (86, '对话 2', 4, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a32302e3030303030305a202a206532653630393364306335633930313935346266663263636332393931616165313566356535316666373639626331333936646166333635666130343336323720633333363031333265626538303764626364663861373366613262343639373537323162363034326362616166363063383365383065393939643866643533360a440589778b08b309a44e8f8716548dac91dd972e4f86e6551bdd020f6da7bcea72630ee26342551b78fa399cb0fa7c87eaad8778cfb54fcbb916dd45e1a0e1594a628a5bed7939fa413af53e26de51cc8f226cc5e25326b1ddf33cf808569a7e049e59ae8910603c80f6079ddf164865ce9fbc971c9f1b3b7fd931c7341b496bcc3cce7121107d2f1c27648f66bd20295188274baabbb2e2e7ff5b149e0d57f32254ff69b934bff73e4f9a9cac2a2337429202af79aeea626864763825f8de418603deb8dfc0e5e4be091aa329ba4b41deb3a08c0d241ad503f728875b4b8b714ad1868a0bed289cf0675607c3bf');
INSERT INTO refold.stored_events VALUES (87, '对话 2', 5, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a32302e3030303030305a202a203763666265383333613266363336343732383631633233333062656264623563356531653337663164633339376433333161363235316138383330653935326220363166343061313665386233653235643233656336633538303132336237653639396561316231303335643364333664626634306236646330343938306134350a5fb06294a388bcb3acb61eb9d2bb7bed131f4f1211e99868c406ef2800abc3ee5a1dc1f9529a5c2f74c91a326b4fc2314df7f39272d66d399510474aed32af981d896aea3ad4dfd8e31375976af5fea5b84df93fd8d1a40b94413833dd4421f27b2c20a8ab2960960fb22a608d168c7cb7459e3b73ade8e7d987fd9a08b87f366b774143359cdfda4ae0075f433bc1a518a525c35054c303877cd3c9bfa6becf760f0170df5abb8ce4130993ae149aa5a9efea833ddf3d79a05203883e279a51fd39cceb220562d4bffb3d32aee9cfa272c93fa41a6b2591af9b1e42647a534addac8c343e20560d7b09d1a208d4cea4f6e25b938fdf7ccb');
INSERT INTO refold.stored_events VALUES (88, 'failed', 1, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30312e3030303030305a202a203661313038623831386537313032363633356435306232386634353835363035623038663539323364303362386366366637336364353466363437613339383820303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030300a797f1d3c6e4afbbd81aa17cee6fe3afd81fcad3ee720beb96387548a9190171038b86e2fbcbb2ae988bd62e59dbf2c912430969aab7dfefee536f19dc2b4bff72672dbe4e4b5718ab12fe433551c5f21efd1ef5ac5160c9131e9bf8fa277259f619bde1ebb1e8d349190b8c4177877765ae5a7c6d667639993aa4314c4b0a5f4fadd73503427d899a60896865ce12b617d5d7b3c8d108efa28581e99eac5d00db1af657baff3f5d05f0a26c041a6f71302f3a133169518da3c48388c991d7b7268a6c6f9a0bfa935dd71b2ca1401d9a0e2ec2a58e24f2f50954dbb1a37189216b816e93b8d26542911a3415d19bf66f0c0da85d02081c7e47464e82794790a93ca89212439c6117255ec1fead2783ae8283034c4e88f0a00e493b8f75dced8a2fb883ae67246d79135a2954f9b2971dbe71436806e879be46dc2937edb0ab8820b2fea21c8f478936eb96c1a56eabb7374cb62cf15b3805d124c1d237b9cdccea0816d6aaab0d22764a5625c3811c58033f1e14c2876778e0e6405737d249950010d79a5f48b8152cf6c370c42662dade58c44221630d88454bf430537588000754dbedc3bfb6f356b956e1a2a4a287c20b7e7e9c0679c4d1c6fd7c0');
INSERT INTO refold.stored_events VALUES (89, 'failed', 2, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30312e3030303030305a202a206365336330636563353635623862653638313963353265363839373932303333613666633065313838323263343436336435383432353738626534386235383920346261636662363963633136356263623064323638313539666338336337353938396131323865353364356134393638643731623236626337633032623232630a08b6f05a557bb0a271a962f131cec672e1e89c6d59bcd474cdababd66a640a0198d29ad5e0ecf0c1a7c774bf20e2108c09469eca4bc88faae40c5ed18019321ed8f07e50754f73fdfd0eb2ca6eee503d9a3aa58445ba5da3c129f69c4b9dac06f102e1c44ddb1bb0ca08427a5cc71c221e4c9e7ae034559b302ac72cebec2203a7b113cb2544bf265b9567562ad3c1e1d83c359a2d04db405398d764b41b6aa42c55f63625125fbff83fe55aec818f8cc0502659eed73e855ea1641709ab1943757b1f05b30f45364fa29a4943dfd0469eb07b0b7fea0582cb896c9eb22178c67a7879412be07564c07797a8dcf798fb6264c1eb3a0934a008955360ff3602df4fd7f5e0f0b92f5ac9cf221f873ad97843a9f4a210941832c7c8f8b0a540e7177c0d686cf4a7b8f05ddd6cbe8b3e989775b34f7c7981205c34efa50409c0eb76b29ea0a1282663b99cd0fa64f0ccbaa71463abe84bd76f4119571b5fedc2b45e0b3b3836501835b6727c91dbdda8f872beec147848f4cf1db83d5e55f887acd3b228708fef0664304b8acb1d83b628015698836e838b6c5be5c476a3447ff7e6c3b0a15a71a79239deef61a59523d62fd2cb9cd7a614636ad1be66d45e3556');
INSERT INTO refold.stored_events VALUES (90, 'failed', 3, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30312e3030303030305a202a206137396534326261613961616431333937356262353331366465623436383931663961353632386435666266316563663066333635636463343437346433373020343435663962623465626664663935333135623631333266633537666264316431623439633239623735663130346636333036323531666639303539356262630a9441ac1695ac56d42e3211d4aa51d0acd2a93c9b64fd4a5e71d11a5be6c691c39a66166262fa2d7255a633f17668e2d14c3149c31528d32e8733476a97773566608f6afe77466ed47b6939c001c86c41e56183447dab934e46abc780c8c85cc9dec321e2d0a5a02bea12923bae300b3c76f07d5b84f9a968ccfd28567fc0478c2504981cee8734069233917a77d621a90771b9fc3ffb2bf978d98e32b5516ca83261f7d74ddd2629dbc92f712a2a9e2d34af8717fbe568f48717290e57ae841edb25294fdf5d4b6459f115d1f5d7beb33554a74e3fc24e8ed3ec55d52a6326dc17cefa4c4c0da376eabe42c1225ed58476bb70a72aca5770d026ba4f8795e3456fc1c71b0b28afe5fd5f9d21c120e26e3584a305e33f46f7d130db6aca0cdea505af08928bca2689b71e9ac2185796de119bc76c1ded7914e2e81877448ce99f92ab9adf6d3a679cd27ff733af8bc8373f51059577b6bfefb441fa7e23580606495f6423ad09309232353221435f90f77b5d23dd55bb1daed1f7bbb1904b659b214fb35cbf4c0f90f84e901fd4bc604b3e18334d5b6ae13ba4ab64151b52afe5d14e1fe71d435cc88a26856895bb680d52ed099f5a917891d441337a');
INSERT INTO refold.stored_events VALUES (91, 'failed', 4, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30312e3030303030305a202a203432313462653863656566323761656631643634383537643466393134616436363330323165326265393339623230326265343732343837643162326365623320653063383461306531643933636466653432353166336334313831373536333562356338373366636632306163366230353633643235326163656562376538630a923721e46dd427c007aadd31e5a6893c2ebff5d3b65c59c290c26bc70c6b0f20434531b6a993af5aae25a2f40fa987fa872aed728f6078830479161663e9a7329ea9b362e9a04ec779bc9aa7fdc866f34fba6898cd5aa5fd69b55a8e9040ad886fde405647312f0ba5a443c47387e4a2ab65ab1adb11ad272f695de82146b4f9264c228d107bbaa68af4de0eff536034df3b444e392882db8a3951c6dc4ca274cb7467ed28cf501e39e69e750a7366a7b5b7303df24f2b70f48040ded0f0e754cdba366123c425fb15a067a4ebb1892ee034676858d60a33f594afb65665b789fe625756b9a449b6560f6d0bac473ee9786850cee57e99d4f9a27cfe4daffd61d7cf3d3239ccbd04f8e0749991315ce8d2570cfdfb578995d79c8a25fc5689981eb44e7dce0d9b874e44ab2c4596fe2a87b830dd24ea1f3c111a812f4b3b9a96bd852a13f72fd446f7653d89b94ea16bea47c36a641c9752557072c58475dafe3bbec59fa04f0601b1ca2234c7936a005b0311cb6e72898293b2b3c434c940122eff8a72018f961e51ce5feacb62d53b65ec9c1bfbffa394ca92715efe30a888cf911626bfa5563a6161f6ecefc84f85518d897bcd05bcda57488cd3057ccf');
INSERT INTO refold.stored_events VALUES (92, 'failed', 5, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30312e3030303030305a202a203466373832383930613234396538356661323530373236316436303965346231303836616664323161333263616661313539386165306133313737333631373620356534353238613032313232383564343639646535393166313433383665313637336535306561326131373335393133383834656330303133306633363166660abe3a6a182337a02e225323094954a84614000ee3ccb256c3a1a98d37ce24dc43c64cf9193ccfd363f6b3b31cc77e77ce0a783310205675fee732dbaa66e44a21b6502934f521909f5008782f8b53ff5712dfb3cf3a56195dc9eb14ebe0f086093a537f6c6265840926c204bc96834b5c2f2c5075993237d92ef932ceadcc5a7c88c9e569ee1646684d8d60d5d7def380d7b29591a18767fff5bdc7b95b124c8486bc989b62cd0884654a0aeceeadedd6d4cc992bb3d23d5ea3639d5f577d2d1f7a41da5efba62a2cde25f4a0ebde8309be7ab6b89ab671fec73446026e9a0f2d385c6d24e7086b9a92842ca2f3fe6c581fddb9eefe3333178ae529e6454d2924023169c72f71c4388a5df46d2f5e8b966b3fae44c70815bacc61e8d0f2c8a25b6c9ce400b440f7d14f7272df114db7c50dcb21a4ace68d9c34cdbbedded801fe9e32e8d80c70f00eae7cbec54a49beea115f15f0bd5adb3b8e9e3e3c2b17b753697fd93df2c8fe04222237a88484f7cf64ebfd94f60f6bf45b54feb1d7ab96af378ba073343154682f589fc126f19fb027b5877f407877e16e2de8f4d268a3f9898ae281c7a396c6fe53936d60439108db03f520afc19840d73d7156');
INSERT INTO refold.stored_events VALUES (93, 'failed', 6, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30312e3030303030305a202a206131613264363561626532336563373033643130656537646535653962656437366131303235313839626664336664616339313830303261613164383361303420666532383131363935393531373237383236363262393065666639306265363066343835646634386565643432373963303331363730313864366464346635370af2a3138a1f0be4cb3436c9f462fae3112c0f24d74211d623c62b8ee2da3375b8cc3b363eae7f4bc51d5f6847de1a29ce0eaddc17e198d1f34ba730aea316f99af86023199660b1521dbd5aaaa33a66a953eb3b9e9fa026ca238fd2b7a216df5297176f5c6c68ac546b06599aa43358c8ff2c9b68c4125d09d3517c9b0b487cfb2720e594a66775013f0bf193607be139dcfc637e68141a571c13797afc5126d8c52980445834bb3a0cc6edfa870acacdb42ef24ba2dde5333bdf87b0f1f7fe64cc2e3cf3d58f4e6a83dc5589f6cf222d87d6248d828de8e921d40c6437012ba687a2750fd7fd6bbb43b758107962b367c17512409d40f56dc7670e37c33a24908c64b8a4edd0321b93973f37a66aa2fdc5e07fc202ad40e3ac4ed2639cb0d40cdae6a64e2115c086d072e92123dd51132798a925483560eb98a66915deafabd0b29481d261a011084c255cfc927daf27a1b15f06585e1326e6bf3eb221dd632848a86f8a32e031bcb47e1d4f140d107a688dd2c691710dd35f9bc844e6cc40d9dab4051ab5fa138c7fbd6899abb4607830513b958478b0948ffa32e57c32aee02cfc43c25b09886427168d968187aca6b7cfe5aec8ae5447b5d121a9651187');
INSERT INTO refold.stored_events VALUES (94, 'failed', 7, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30312e3030303030305a202a203631333563326536623062363738353266626563333137633462626264653666343161313033386139623034643663643637623735616236633435396664643720383933653534353565303965313465333534336137393564643663356633366235323539646465343661336366656330333135646236316335633031353935300afc39c0e02a893a66ba368fac4f7628a737918ab851410c87b0c19545b025a3c6849dc3ac950e0f51730efdfdeeb76c8a0ee550965d4571ab8028f9a262c6030ca5094b3c8263ba8cd50c7d0fada95af86165cc38b3c3108bdf36608a8f2eea347dea65491dea849fec9573c154838058c4f569bdba967940d700f687921325ec29f6af555be0a3296217902c11e5581a933f4c1edd51a938518157bef3a0be7886e6a4ea05ba6b0b5fb7adefe640aee0c4a18ced67bf353fe47c7bc625f688f6af0b59905a4e0388e84a2cc6998900bc687ad4b8a62699bd2037fdf77252c485d18eee668c5b66a1aa7cf694ce8607c79ddce056e5a81e577bac779c332b52bc4126871a60e4f87e4b613f3f9eb85f8ff7475f7dcecd149e3501ea79d5daa9b3aaf82bfd56cd19bffc73f2ca2def397482a40a6cdbf5cf97e13a5243999119c01a19eb598cee6e3ce45ca242adc8a6d8d96ad84dcc96d77925e30d6a0e69be5cc28bb69af6961bcd83b10fad6a0c36816759fa22dd42500897878cabb82945f6e43f520333082c70bdc09d69b89fd2cd169fd930426f052caa32e21a80dedf7bff259a1668da880c8bf9e8147a493acd2414e1d58ef13d23bab7630a');
INSERT INTO refold.stored_events VALUES (95, 'failed', 8, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30312e3030303030305a202a206463333333326632353038353133383564393139633231646335646166653231666535636632346137303635306561303631323035653332393737613263663120613962663261323539383665316163396635383437643564666165323934393961616535616633616661363666613835303163623262333934633938326237370a36be6d99a3de90be625c2e4f1cef7ee8a48767b8af1500393cfecf3ac70af880141f7267e337af8db3683d63b844796e3780c8439a18a3c8dbdcc944005d461bf90ba602753b9ccd598a9a496d3507c352cae3a9adf678a5a0b957ba3f5204672f5beea379e2dda57c44cb5f710dc704e30f5bbc65c848ea31808aa7a18db37db7ddf629e3352e1badd130b1ace62bcd7ce1da406d73c468f7ff64f0e7608d5c20c808373545deb2917cf5aeb5b056321b7b0c083b807064bdfa11fdb9b2e5e92e9cbf7c0001346dde92fc20549bb3ccff109e5414270b493b0a0edb4f0f495440ca0f94d61beef232045fa1361057b307f318c908d8f81501bb1f639fbf4a10fcafb56120e8e86532807b8f2041e125dd6aff55e4ff94423640bfe7c53ed3162c7747769a29acf13b41d107c0f5cd700f156733115678080e21dfa263311626a580731080b2c6212860400535d34ff648fb3949b9b288585877d015a6f2e9c3cec500fbd36305dc05d053fd81f18caf956888f41993cd1c865870903d00007d6808e5f0028749b9964adeecb5021af81e01e7f3d8ae92c1d03a8d60bd8c873337ef8d0e709a036cbc496ad1e3c30a09fbf9bd8ce491135595a1246f3d09d8');
INSERT INTO refold.stored_events VALUES (96, 'failed', 9, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30312e3030303030305a202a206636643262313162363164326635373461313063356564653731383865346633623966393930363364663033323666323761373665373838653763393935356120393539636366356335623866643935346638643761366139623230623864666332366166363866613436646435346634373762623961343833623565376239300a6ab530b6cc9dea5634262e0f1e273a9482e8c33c55e0bc4524cfa0f1629d3806970222356db5e4f21dfe7012a669d57e3e1c981fc72d45570c6a13344f912fe18180ad569c9f0bfec56040944c73212a6a97eed08ee81ead738851023a36faac6900d08932b1be2cec29c87f37ca1f49ea97cda87bd5ece91381d2da0de1231baa8bbe67ce69e5cf0f640679762578eabe85677e8b62817d707a30a562ab2ca6ade8004b7ebdcf8cd0c7a402be138be1c03f5872c99ceb295e72e567baf51f78457735d5c6531cad553bdd28f4b08c08ca436c4d19fa3379b2355ac8fd534378661c005630c9c6c2c448bc5cb3715bd368acfd287a51cecbac090dcc39ed449192d11a696f02ed240c5a32eaf0b2fad5cb58a8cd9ffc977707952fbd69cefb5d0fbf9a0df66013a4b245f17cdac45945c6c4cf20edb15109b21e71bb3d22922aa9457016cbc2bae0de41864f2df3dca2baf673bf72c2491923b6b8ab60c5ebfcd252b74d9b62861e7fcab8b16b56f273ac168c28d2aaedc351c29c4b0e5ed5af94d1c26c6bf7ae3a202802025b983a80e3ce60fb5d3843905e439c8f59a6024418af548ba669bd9a0b9d63dc4f36dc9d2c7ee5f45f09dae2b9424d46');
INSERT INTO refold.stored_events VALUES (97, 'failed', 10, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30312e3030303030305a202a203033663663386166313438373232306331633361393439373165393363373432653764316564643265313538356239616432366637396435333737393939353320613236623966343162313133616137666466303435653661643930613964376361373564626337373032643435356533393930366435336165303035656463390a54f1e77245c1e391aaa02116b8ba740ed2b4d7a6c643e442a6bb05becd21221690f97723bf133faebc7b54d7462bcbe995d5234adedea314f85d0fa21f2f607fe094b141ba95db8f0510519234ab586305d0d1338cf2a17e0929fe1cfae7669e86e3442abd65daadd59fc80e20afdb99c31eaac64bf1dbc651da33927ab1602b3d076476d4532890ef1b1d7cd67823f1d4ff54d3cd4021cb68b6a51fd506f015b67cb85ff0198885dadd6f7b675497f8780e5dfa7e4e847d968a12428530c5774fe5122a25e10f3a1696c8e2864be2b90de5261ed164c21902f4c1a2b04aa9f27ecea22caa10299ea5e38e64bb9653f479e4f5cfb4174d9020348698be8c0e753c0b0d3d4c7745d09d18b1f0d1fea552d8d43958599d0dcbbe808af830569be34662346eaf801bbd3a416f933f70ee44f170319703fff1b8dd04e7c74acfe86fc8fd26a51ca1fcc459efd5eaf26800530656128407987819eabb64811894c6a9708ba6abf176a555c11060ae32d5234f761e3e4caf607e36d90e61fa8b3242deb6e3d0b31dbe26b5000789179cd3fe0d06fb7520bbb6385eec786b96e99d23554398f8ef61263c94d19f30c9293c34c3570774279395171eb2c54c2c697ba6e8');
INSERT INTO refold.stored_events VALUES (98, 'failed', 11, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30312e3030303030305a202a206266376632616162373739326639653830353739376532386434356463306434643336383763373262666666643035386466356565623838383365383561626620663262663339316132363337396461316262393339636539313965303165333938623963396463316430386330376161313832613339363031666637353535340a5c69e38a2021405904677480cbcfa0d9fead0cad7a7826a45bada9b26f2b90b23c88c4c89c289038c17fe304a723141d50f7d266142a46bfc08646de9a0920f74be3303830e58eaec59c205e0fcbb2145e3eb49fa28e6602d043349d96e30f0722988afb6ef3c2744a49593b93afb34790aa032b580eda3d9925b21a1c989e9c5b74426c1b9df84cccddf8fb8011cf35b671d85b2a459794ca14cb8a12b4e2895f34ef390cc7e061f63a6d12d550fdf33f1da8bd843533ae237e63840928f7543c101e943d5e40f14e9ccb28eb8aef478b7f5c5fd1700dfdb898430ce098cdaca256247588f2fe52101ed2e9941c6751b24e2dd5d284f5d7c038db59de8a693554fb10000e281a4834351477917d5d21b2427fa190156669de57b031953710df053b1fb71884231ff99b89935fcf7f76f4202b8dce9f9b15fbbde212d0779b1ac020acaf4f5d901421ce4ba21cde1bb181c52e942004c397000659700ac45b87d3124649b7f56886993270f70f6c821edb006c7b5293a7d8c0031d260e887aca4530f2ce7b320e6617c387cd98b3b1b98e3f3171111f9db3cf491c59ec74f47ff1cf603a7c9bc694d440c189a195064e3ca577ff889cc41f25e8cb8db5cc');
INSERT INTO refold.stored_events VALUES (99, 'failed', 12, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30312e3030303030305a202a203535343164343938396534313935643532363534613836333537313564323132363437623966323465353037376330613064383830393463326530643662376120636166366465313033353638653965313362333966633732303530383762313864346632613739666536653035653164323465333732393032633763623561390a99f67ba89253c435ca6c946bd1afff95cac06048e5dad93722f3e6ba0c6e3f0db41ab91f844d9664f6716395ac7ba9d46ba9a57fb2f59556ae386793d7c76a6d98cf0c51f750c9f08648b7860f7872d62a9c609719492553926255dfdad7ce61ef383d0947815f4f49ee66ebf9f113f1e7041306b83a178046db974f21f33cebc456039c820830a362e8af16e4f0ab57878352d673b499e248115ac90d42394b741666d953847f17ea948ce800ced4a5c60d3614c21ab9b0163ef163c43e20116e9f763cf14a17187e819ad8359989b22e3d6032b3ed642705d813fa97d9ab45c9e9fa1a96616bc42a511a788212d6321b1575c0decdf1aa407616de92b042b82d04e74f4469d0cecb85cc8fd9d7b1884fe91b3c4076ec367d1fb42f56b96740c844eb911faaa8c6aef71bd383f4bfd83cce261d0ad3d9f6f98305870a6584c638e6f638338bcef4560ad44c22cf7af215724aa4fbf341b8f6f732febd675f73c450b000734d36974c7153ef8c06159fdbf794a495b157641e89194d7c815b7e5ef70f6b21c0702db05e4b01a109559706a03154dd77ad0e4b7efc72fc7aa9672086b8c1e96d9d45b4f996c3b099312ec1196147896b91aaaf31272480ae284eee');
INSERT INTO refold.stored_events VALUES (100, 'failed', 13, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30312e3030303030305a202a203231363461346238663735326239346635303836616334623764663363613136386465393363386331633064613036346433633063386130383335346237313820613063353266366634393565306631376163666239363366343634653065663864313264656539393064626238626134383730393064343163626666393264340a0aaab195cc0c799fd41a49cc1f87cbf9a4897899f8e7cac3a918fe7a2de171c325478014a29dd37d032497f9e28f09944a6b9c3373c54ea50c2258a0f4170fb3b51324558fa3080054ac172b37033b620bcf06ae7e53d717c55e4f777302df99f17b4611ddb6554a81f1a86c1303f212cf4a17c6806dac7b6742649b53031d64fb32dfe906b0aa23fe4dc3894c5210049c53bce35e9eceb9667170da83758dba9a1c574df82a0596409fbd7d2129f71fc5fa7276612957ed968596690f1e927ab886ce87f37fe0d2ece043f964c6ef8240a4f173fb386f4fea2ec8a6f59458f9cada2ea7ee35c3c7379cc55d09eb4dcfbd65561345ef9c20bf6b619d04ab796237513ff291287e15c08e74cb15f0acf3eaa399df1128b4cfcb317e1d9de5dd6cf1ffb6cad0db47f2b996c637c618b8c31d2a7b48f140dc62a4a6925d50e6bbd982e4b0af931db1197854dc2ae81cd15eba793ce5a8fd1f899e2e86eb95be44c109b6bf7e4cc14db40583fb8c0e4d9fc69e8f299ffbf7a92881e04a3c12b55800fca2887442ece5d959cc759fe1d81fa862c1a1ea531125ba289923d3c731f1bf1805e1b43baf5a42956dfe741225e1ddfcd829fd91027dcce0b116b43f82');
INSERT INTO refold.stored_events VALUES (101, 'failed', 14, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30312e3030303030305a202a203462323566303432646432653131343361316630376461313036353462333236333463633733323933363935326531333762356662623034643861336633313820306332613336336265656434343032366234656462646365316531313062333261326664356639366535336431346638313039653732303664393466333239380a4c23fa3d135e3c8599fb30224ed70a4c344b34cde01a1c2220619e0415d1b82c28467c65e808acb402b0f95b4aa3ecf131865526610134d2fa86aa88c063c8e4b50aeb0f14d10bd9ad8333264c7c34103dda1492160f706e309c91d29a644c66dbf8626e211028bea1ea15d6e195c61b0d38c1e4a0ba2321152237d81a7bc7a4efe8bf39647373c280cc64cd3fe5942ec92da0ce336a491507a02df03de96d7d492cdf949c36a2999a723ff32e3483551c348cda014fb800d29762ac39b7d19519cad89593e495f62c7d3de5320e44c73ca259c2b5de9a999dd7e9a4187bf165e4715387b8791f64960ef5c88a26c52d84e72e209e96d7344d5f0b640012a5f753a1671ea231d06c8726dff6ef1d761e0e87da49839a65b97124dfb6588f5dc02c46301355ddf980f54f074e6f6f8260388348a2fde9318a0f43588d649d47e0cabca44bde46f0754b1f35a0911c6c8315602fb4549556c824a9420a91656919de3ea20eb07b48396d3b69e5077689d8b9e5a9d301cbe088e13b4749984ca3bb705e84ecba16835f9fa9ca35c239373e45befc78ac73178304ef62c1095bbe48d7649050e5c6e1ff38424a087ea6eb4f03e08ac7da442b51da8be680629455c355');
INSERT INTO refold.stored_events VALUES (102, 'failed', 15, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30312e3030303030305a202a203136653531653337343632666138363730336230643936373633386231616536363365396231303338343435343835313663313139343230313733653130303420346137386630356632616665316439346666663739623237663164666437336235663164346534656566643336393830323566613865626266313864613432380af3a82f8dea6a8409677bf997724845babb2425fb133b4ec94534fd18d2365eca7139dafb27de01f8be356998a6d83b2150638a58691b997e588930a08171d17362f53e966a00832ecdea9e5b56126da2a1a5981119324cc30e2bcc4c91f501868a7cb8d081a6c4d89500f8c0a74c15d8cb4dcdf5f147c7527434d62a1b9f3d1fc8f2fa3cfc986f4ace5dbfade76e79e72553183bb2a32352ebdb884c5cf14ccd5939ece16341ce599b155de694f3780412ce7a4b7c1e181a48e56692632c289d7b24a08ba5c509433323d26e7cd79125d6176762aa9aa61f3c39a21a1570d75214390401802557cac88d358566b426df0373f822e06b87fd7c8a6f25907c2894d0438699ec50d3aa22c371e37241ac10e304f5ab614dea081cdf83cea9bb9f7b3adc3b70d90ce85909907036359e99bfd5877c7cc0c46ebb6aaa1a745614d5cc94ee67d3da9a0a5fe75ba196072029e6bd653e33e559526b4bacc6c580d6f86ed79ef025c509409ac2acb6bb295a62548d9f7db851a6748d17275026015083f9d8847a9b7861ec557aea12d0c96cab3c4a1d28f62d1bd86aa9523316790532ca5a22f87b2ecc9ade3092039936a44599229e9fea42a7c2a140a860996f67');
INSERT INTO refold.stored_events VALUES (103, 'failed', 16, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30312e3030303030305a202a206131653830663037356132626630356563626138363765663739643237366264616565643963633932333165613864363639616462623936383034623365393720633065376433613264333463656433643730353630663530643764316537393338336635353337363636373831373961346334386239646130316534333035330aa22e7283bc2ffe634df28c63910d67e10ced4b4eeaf86161c20f48ff601d408a8050873e6d7e8bda6de3b9248a980fddb2e0a301389ac873c14ced6b879fee53d797dad76097d52728cf590c3b66ed2b6935916faac5833b8c68c13b3659f5ec35c3775b1095c8f8f45aa1ac622c2f0ea4880b10a39535a8ec11414f7c3e292700ce957436b584c528d8a170262ad949b2100633e05bb95f1efd1ffed660461c8131b71765a53ed19e6613f8afc4db6a8cdc1eff07859efa7a46f5b687ec7c3a6e54f70265d15e338b9aac5f975a8212761423567e8db1fbd5a66ae0759da94f7fc238b1afc49dc09525a2630f227b1f2aa5982c7fc8353591aa99c27d6ec5607692c5988b183301c842ccf3d84bdffd2e58e2df371bb079cd3f3b0b3a96017a07d28d62c5809c406369b7c1159e81a53334cc34a12eedea14e4304127d330346a5a3b604891cde063b911c3c93eee0bd14da08bac6fa1279fe81c37e0f64421e37d3859b3779685cb8c5ee3f68c0cc8996052b486dd8e7ac03d12d9ae2bf71e1e9cf40234ac0adb84089670ae56cd4c7771d4060db72f557498a7a1a42f96368c27d7913c439b9a031b77729be5cf391485ae16dd41368f562b8d7755574f377c');
INSERT INTO refold.stored_events VALUES (104, 'failed', 17, 'compaction_requested', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30322e3030303030305a202a206639393936383437303761383866353162663131613432313338653632313731356136393163366638326164343139336362646432666334373565353664623420333537326132653462346465636237306366363638616634656533343438646163663236353462646430343238333434303236656662393037343539353566640a3f080e07d335930ad52efbf53ba822ecbbdea576499d6f346ca3036c1f1c440a6895fd49270bbe8d9a59a392bcb0e59cffab997fc93c077263286244042bfd558ca502460757beb734abe0ace35d8c9cd26e8b5061a2633c0d46459000d1bbfbee5ac1fd2db126052b995ebbedeaa2b22bd17fc82a56646a74e922c05bd15fe51265fcb69f76058d5f400c82ca687cef5df2e58cc313be466e9d8663f5128b42632e763d74b8e3de06cdaf49328c20f0ed0ffc81726b60982502e15bf0555e4ff07e3b54fa44a15567296b7f6eafb5102517a1e5624f84ae24725b4e3fc6e9fc9c5b56375edb72cccd7ef2bb3b62dc73a5aac05f4caa864ae773c959b2fd0e5f46e848c9a93122ea0f875a640c25fffcb2136c82c7f0fba145f6fe673ee4ea50beed16d098eb0fa9e9cc7b2e25a51d1a81dd968d237cfbfde72e08f2d9a9401f2387ab80d9def3a4a044f1407c2cdb705f965c79f823179d3f100f9a093ea510025a0268a99396a1e207fbe4d8626df29db93cf6f839756f403a67c05e135ff2af2aa1558c4a508219a8e17374e242d84f5135c14aaa24bd4c3596218337704e9957ee16397ba7cb8ad1304493765869398918bb42b33f9de126e893fcba16f7b351a0cc240b4e5991ef44d1d19e297dbc6de156a69fcf0bb6b7e244e3065037ab2e12b7cc8b3ae656e329936f96e74d5235d794f7c818309b319bc345573d1168c9302a9e2a7139bd6ee845e1e9cdd2ea163b3d79db712e4ea2f5427e09f33ca45bf0aa135404a02153667cac821d40c523c18e7411bcf3b8e7ea7eba946531d8dbd6c2e46bbf957510b9fa80bfd31a807c0385e8605c259900b658847a7e964e6410a6df35e44c3121bbc36ccc698a7324318c21afa570d09297b71a6a743830292541d7392d4152d7b40be5f8f19ee2d38d294899fa7415e73642fd9db51d261785bb565a96cc2767e7ceaefd139b04befbd9525d27578fdd60765a573716075b4e60955e20dbac6f1a1115c5321577e2d2');
INSERT INTO refold.stored_events VALUES (106, 'failed', 19, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30352e3030303030305a202a203537663537333364343561396462313636646463326233303965653734623239613932393261623433376633303733376362306237393266363634356362633520646334643662353264376334383336373731643632346533656634326265333037643365333830353264636134396430313938386236613266663538366262610aa43cfe4ff5108b0beb6336fb1f2e1dc39dbf2a2007cc46bbbcf46dd5f859d16148ea11695ce3a777a72dff3dbeaefad5cb1804e893fdb26eb95e0707adfcf9d0f6ebb382131d41c933b081fde38af4763709f596995f2e4a809c7c6f8ffced111ff3eb3f7baef6336ab0b4c7d3372e879ed3832b0a5efe71181602f03744dccbf0aa5d84efe3fab1609ca980ed4d3b4ae6ad4ef89196748bfc63e0ff99bf122d218f5d28e07fcc8858cd0f95d8e83b565376672f4280ee33eca27bc852ba01d17699ac1899323c062d19771d58c8ff515d31017475354df3e0f4f40075def34406a1c6f0d9f1f5e99ea8e5497d81dcfe4c6ad08381598e18f47a4be1918ba99f85a9325b7cbcb7774eae61094bbe371e74cca262a031cc18dff318c76c6a744eb7d9e53b5f671e6b025a04d066869bbd6658ff1fdc760d47743b9052924100124a0f4177ecd97efa27f95ac7b41282e984de47b3356f0e5869eb326624fd8166a86ccc7efd450985f5a0b82d7105d43d469a24cee7a18da1b2e346c842f1b15d0de82c86dd715bf89743ad2f378b2a82101fa146c937b629fb5b7629779f980c4e94ece4c2ba7f6ff09ba0c6f80a079e48efd383af17cbdbeca7f14efe47');
INSERT INTO refold.stored_events VALUES (107, 'failed', 20, 'message_appended', '\x7265666f6c6431203120323032362d30312d30325431323a30303a30352e3030303030305a202a206363346532373530346538383063373336646636663461303336373836376538376333353436613931613762376334353562343865333864616530653664623420353733383064623431346265316666663561393130653662363562623065616564363035313064633562323734373834633130373935343432636564376638620a5c3b26ee22f2437c8156a47b35e452cc8bcba432958d23a37e7fc32ae4b834f7f84d44890577b84d9f9bc4742d04563d3f1d79f48572aa9022e96db6a9f561712ed7ea652c707765ce7dddaaa98d9c81a8d82e5a0ce5b5f3acb552e433f91bc34c3e725ec4451b9a7a03daf7453b41f938ba4f74ae81dceede10357481af171e104846a20dc378934a6b1383845bbf4662f8f504f319107724922669bfebcef28f10d797bd8090f67b2d15d3e6e561f718c027f3ca4ebc9634cd86ab081d5ffefda8a469114b42f9cbf2d989babff02246b2d0d595b3711198f836a5c087c068ba963c8230d073127716af1985da22f30a4f6b68864383529e24765c6288b4b7ea756e07ea06e71ca8b8ca849c2b0528b53d26e36c7e5396deda41739b19db7a7e807bf643340a3a876008f61851e6ae32976ac55d814cde06e9eed8fe905ac1f3134a3b1a45db2eb3c542942bd8eee49ad2fada3158e930d8ebc1350ffddd9903a874c571cdf671fb00e8d17ce07dea979bb9dbf1a4797f1c28fa7a6370b7cee9c32e774c40322e633ca82f2d86245224b013f56f1507bceb5baaed18e5c80da33b44c3a0a40ad586a199dbf7a118e0864c4edebd74f3994f6a22dca947e1dc24');


--
-- Name: event_ids; Type: SEQUENCE SET; Schema: refold; Owner: -
--

SELECT pg_catalog.setval('refold.event_ids', 107, true);


--
-- Name: pending_erasures_number_seq; Type: SEQUENCE SET; Schema: refold; Owner: -
--

SELECT pg_catalog.setval('refold.pending_erasures_number_seq', 1, false);


--
-- Name: encryption_keys encryption_keys_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.encryption_keys
    ADD CONSTRAINT encryption_keys_pkey PRIMARY KEY (fingerprint);


--
-- Name: erased_keys_in_wal erased_keys_in_wal_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.erased_keys_in_wal
    ADD CONSTRAINT erased_keys_in_wal_pkey PRIMARY KEY (only_row);


--
-- Name: log_positions log_positions_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.log_positions
    ADD CONSTRAINT log_positions_pkey PRIMARY KEY ("position");


--
-- Name: message_keys message_keys_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.message_keys
    ADD CONSTRAINT message_keys_pkey PRIMARY KEY (originator_id, digest);


--
-- Name: missing_ids missing_ids_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.missing_ids
    ADD CONSTRAINT missing_ids_pkey PRIMARY KEY (first_id);


--
-- Name: numbering numbering_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.numbering
    ADD CONSTRAINT numbering_pkey PRIMARY KEY (only_row);


--
-- Name: payload_keys payload_keys_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.payload_keys
    ADD CONSTRAINT payload_keys_pkey PRIMARY KEY (originator_id, originator_version);


--
-- Name: payload_keys_00 payload_keys_00_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.payload_keys_00
    ADD CONSTRAINT payload_keys_00_pkey PRIMARY KEY (originator_id, originator_version);


--
-- Name: payload_keys_01 payload_keys_01_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.payload_keys_01
    ADD CONSTRAINT payload_keys_01_pkey PRIMARY KEY (originator_id, originator_version);


--
-- Name: payload_keys_02 payload_keys_02_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.payload_keys_02
    ADD CONSTRAINT payload_keys_02_pkey PRIMARY KEY (originator_id, originator_version);


--
-- Name: payload_keys_03 payload_keys_03_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.payload_keys_03
    ADD CONSTRAINT payload_keys_03_pkey PRIMARY KEY (originator_id, originator_version);


--
-- Name: payload_keys_04 payload_keys_04_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.payload_keys_04
    ADD CONSTRAINT payload_keys_04_pkey PRIMARY KEY (originator_id, originator_version);


--
-- Name: payload_keys_05 payload_keys_05_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.payload_keys_05
    ADD CONSTRAINT payload_keys_05_pkey PRIMARY KEY (originator_id, originator_version);


--
-- Name: payload_keys_06 payload_keys_06_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.payload_keys_06
    ADD CONSTRAINT payload_keys_06_pkey PRIMARY KEY (originator_id, originator_version);


--
-- Name: payload_keys_07 payload_keys_07_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.payload_keys_07
    ADD CONSTRAINT payload_keys_07_pkey PRIMARY KEY (originator_id, originator_version);


--
-- Name: payload_keys_08 payload_keys_08_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.payload_keys_08
    ADD CONSTRAINT payload_keys_08_pkey PRIMARY KEY (originator_id, originator_version);


--
-- Name: payload_keys_09 payload_keys_09_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.payload_keys_09
    ADD CONSTRAINT payload_keys_09_pkey PRIMARY KEY (originator_id, originator_version);


--
-- Name: payload_keys_10 payload_keys_10_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.payload_keys_10
    ADD CONSTRAINT payload_keys_10_pkey PRIMARY KEY (originator_id, originator_version);


--
-- Name: payload_keys_11 payload_keys_11_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.payload_keys_11
    ADD CONSTRAINT payload_keys_11_pkey PRIMARY KEY (originator_id, originator_version);


--
-- Name: payload_keys_12 payload_keys_12_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.payload_keys_12
    ADD CONSTRAINT payload_keys_12_pkey PRIMARY KEY (originator_id, originator_version);


--
-- Name: payload_keys_13 payload_keys_13_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.payload_keys_13
    ADD CONSTRAINT payload_keys_13_pkey PRIMARY KEY (originator_id, originator_version);


--
-- Name: payload_keys_14 payload_keys_14_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.payload_keys_14
    ADD CONSTRAINT payload_keys_14_pkey PRIMARY KEY (originator_id, originator_version);


--
-- Name: payload_keys_15 payload_keys_15_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.payload_keys_15
    ADD CONSTRAINT payload_keys_15_pkey PRIMARY KEY (originator_id, originator_version);


--
-- Name: pending_erasures pending_erasures_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.pending_erasures
    ADD CONSTRAINT pending_erasures_pkey PRIMARY KEY (number);


--
-- Name: schema_versions schema_versions_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.schema_versions
    ADD CONSTRAINT schema_versions_pkey PRIMARY KEY (version);


--
-- Name: stored_events stored_events_id_key; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.stored_events
    ADD CONSTRAINT stored_events_id_key UNIQUE (id);


--
-- Name: stored_events stored_events_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.stored_events
    ADD CONSTRAINT stored_events_pkey PRIMARY KEY (originator_id, originator_version);


--
-- Name: stored_snapshots stored_snapshots_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.stored_snapshots
    ADD CONSTRAINT stored_snapshots_pkey PRIMARY KEY (originator_id, originator_version);


--
-- Name: vector_models vector_models_name_key; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.vector_models
    ADD CONSTRAINT vector_models_name_key UNIQUE (name);


--
-- Name: vector_models vector_models_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.vector_models
    ADD CONSTRAINT vector_models_pkey PRIMARY KEY (number);


--
-- Name: vector_prunings vector_prunings_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.vector_prunings
    ADD CONSTRAINT vector_prunings_pkey PRIMARY KEY (only_row);


--
-- Name: vectors vectors_id_key; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.vectors
    ADD CONSTRAINT vectors_id_key UNIQUE (id);


--
-- Name: vectors vectors_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.vectors
    ADD CONSTRAINT vectors_pkey PRIMARY KEY (model, digest);


--
-- Name: stored_forks; Type: INDEX; Schema: refold; Owner: -
--

CREATE INDEX stored_forks ON refold.stored_events USING btree (id) WHERE (topic = 'conversation_forked'::text);


--
-- Name: vectors_without_half; Type: INDEX; Schema: refold; Owner: -
--

CREATE INDEX vectors_without_half ON refold.vectors USING btree (model) WHERE (half IS NULL);


--
-- Name: payload_keys_00_pkey; Type: INDEX ATTACH; Schema: refold; Owner: -
--

ALTER INDEX refold.payload_keys_pkey ATTACH PARTITION refold.payload_keys_00_pkey;


--
-- Name: payload_keys_01_pkey; Type: INDEX ATTACH; Schema: refold; Owner: -
--

ALTER INDEX refold.payload_keys_pkey ATTACH PARTITION refold.payload_keys_01_pkey;


--
-- Name: payload_keys_02_pkey; Type: INDEX ATTACH; Schema: refold; Owner: -
--

ALTER INDEX refold.payload_keys_pkey ATTACH PARTITION refold.payload_keys_02_pkey;


--
-- Name: payload_keys_03_pkey; Type: INDEX ATTACH; Schema: refold; Owner: -
--

ALTER INDEX refold.payload_keys_pkey ATTACH PARTITION refold.payload_keys_03_pkey;


--
-- Name: payload_keys_04_pkey; Type: INDEX ATTACH; Schema: refold; Owner: -
--

ALTER INDEX refold.payload_keys_pkey ATTACH PARTITION refold.payload_keys_04_pkey;


--
-- Name: payload_keys_05_pkey; Type: INDEX ATTACH; Schema: refold; Owner: -
--

ALTER INDEX refold.payload_keys_pkey ATTACH PARTITION refold.payload_keys_05_pkey;


--
-- Name: payload_keys_06_pkey; Type: INDEX ATTACH; Schema: refold; Owner: -
--

ALTER INDEX refold.payload_keys_pkey ATTACH PARTITION refold.payload_keys_06_pkey;


--
-- Name: payload_keys_07_pkey; Type: INDEX ATTACH; Schema: refold; Owner: -
--

ALTER INDEX refold.payload_keys_pkey ATTACH PARTITION refold.payload_keys_07_pkey;


--
-- Name: payload_keys_08_pkey; Type: INDEX ATTACH; Schema: refold; Owner: -
--

ALTER INDEX refold.payload_keys_pkey ATTACH PARTITION refold.payload_keys_08_pkey;


--
-- Name: payload_keys_09_pkey; Type: INDEX ATTACH; Schema: refold; Owner: -
--

ALTER INDEX refold.payload_keys_pkey ATTACH PARTITION refold.payload_keys_09_pkey;


--
-- Name: payload_keys_10_pkey; Type: INDEX ATTACH; Schema: refold; Owner: -
--

ALTER INDEX refold.payload_keys_pkey ATTACH PARTITION refold.payload_keys_10_pkey;


--
-- Name: payload_keys_11_pkey; Type: INDEX ATTACH; Schema: refold; Owner: -
--

ALTER INDEX refold.payload_keys_pkey ATTACH PARTITION refold.payload_keys_11_pkey;


--
-- Name: payload_keys_12_pkey; Type: INDEX ATTACH; Schema: refold; Owner: -
--

ALTER INDEX refold.payload_keys_pkey ATTACH PARTITION refold.payload_keys_12_pkey;


--
-- Name: payload_keys_13_pkey; Type: INDEX ATTACH; Schema: refold; Owner: -
--

ALTER INDEX refold.payload_keys_pkey ATTACH PARTITION refold.payload_keys_13_pkey;


--
-- Name: payload_keys_14_pkey; Type: INDEX ATTACH; Schema: refold; Owner: -
--

ALTER INDEX refold.payload_keys_pkey ATTACH PARTITION refold.payload_keys_14_pkey;


--
-- Name: payload_keys_15_pkey; Type: INDEX ATTACH; Schema: refold; Owner: -
--

ALTER INDEX refold.payload_keys_pkey ATTACH PARTITION refold.payload_keys_15_pkey;


--
-- PostgreSQL database dump complete
--



