PRAGMA page_size = 4096;
PRAGMA encoding = 'UTF-8';
PRAGMA auto_vacuum = 2;
PRAGMA application_id = 0;
PRAGMA user_version = 0;
PRAGMA journal_mode = 'wal';
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE events (
	id TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	event TEXT NOT NULL, 
	client TEXT NOT NULL, 
	session TEXT NOT NULL, 
	agent TEXT NOT NULL, 
	tool TEXT NOT NULL, 
	cwd TEXT NOT NULL, 
	road TEXT NOT NULL, 
	verdict TEXT NOT NULL, 
	exit BIGINT NOT NULL, 
	reason TEXT NOT NULL, 
	seconds DOUBLE NOT NULL, 
	steps BIGINT NOT NULL, 
	caller TEXT NOT NULL, 
	cut BOOLEAN NOT NULL, 
	payload TEXT NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE dones (
	id TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	verdict TEXT NOT NULL, 
	exit BIGINT NOT NULL, 
	reason TEXT NOT NULL, 
	seconds DOUBLE NOT NULL, 
	steps TEXT NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE turns (
	id TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	what TEXT NOT NULL, 
	pid BIGINT NOT NULL, 
	version TEXT NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE positions (
	id INTEGER NOT NULL, 
	segment BIGINT NOT NULL, 
	"offset" BIGINT NOT NULL, 
	settled BIGINT NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE fairlead_revision (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT fairlead_revision_pkc PRIMARY KEY (version_num)
);
INSERT INTO fairlead_revision VALUES('0002');
CREATE TABLE mail_agents (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	session TEXT NOT NULL, 
	project TEXT NOT NULL, 
	parent INTEGER NOT NULL, 
	agent_id TEXT NOT NULL, 
	created DOUBLE NOT NULL, 
	seen DOUBLE NOT NULL, 
	ended DOUBLE NOT NULL, 
	saved TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO mail_agents VALUES(1,'User','','',0,'',0.0,0.0,0.0,'');
INSERT INTO mail_agents VALUES(2,'Fairlead','','',0,'',0.0,0.0,0.0,'');
INSERT INTO mail_agents VALUES(3,'Script','','',0,'',0.0,1794839984.3641250133,0.0,'');
INSERT INTO mail_agents VALUES(10,'amber-fox','11111111-1111-4111-8111-111111111111','/home/user/project',0,'',1794839980.3124275207,1794839989.4378340244,0.0,replace('You are the agent amber-fox: others write to you by that name.\n2 messages unread: fairlead inbox','\n',char(10)));
INSERT INTO mail_agents VALUES(11,'jade-owl','22222222-2222-4222-8222-222222222222','/home/user/project',0,'',1794839980.3279910087,1794839989.2080681324,0.0,'I review the notes.');
INSERT INTO mail_agents VALUES(12,'amber-fox/explore-1','11111111-1111-4111-8111-111111111111','/home/user/project',10,'a5dc68169f39536c4',1794839981.3943564891,1794839981.4322490691,1794839981.50785017,'');
INSERT INTO mail_agents VALUES(13,'grey-crow','33333333-3333-4333-8333-333333333333','/home/user/project',0,'',1794839984.3580682277,1794839984.4852223396,1794839984.5635392666,'');
INSERT INTO mail_agents VALUES(14,'amber-fox/coder-1','11111111-1111-4111-8111-111111111111','/home/user/project',10,'a7fe81120d126f83a',1794839985.9498069285,1794839985.9752581119,0.0,'');
INSERT INTO mail_agents VALUES(15,'brief-parrot','44444444-4444-4444-8444-444444444444','/home/user/project',0,'',1794839986.0104515552,1794839986.0515704154,0.0,'');
CREATE TABLE mail_formers (
	kind TEXT NOT NULL, 
	text TEXT NOT NULL, 
	agent INTEGER NOT NULL, 
	PRIMARY KEY (kind, text)
);
INSERT INTO mail_formers VALUES('name','jade-hill',10);
INSERT INTO mail_formers VALUES('name','silken-marten',11);
INSERT INTO mail_formers VALUES('name','jade-flute',13);
CREATE TABLE mail_subscriptions (
	topic TEXT NOT NULL, 
	agent INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	PRIMARY KEY (topic, agent)
);
INSERT INTO mail_subscriptions VALUES('build',10,1);
INSERT INTO mail_subscriptions VALUES('build',11,2);
CREATE TABLE mail_marks (
	name TEXT NOT NULL, 
	value BIGINT NOT NULL, 
	PRIMARY KEY (name)
);
CREATE TABLE mail_messages (
	id INTEGER NOT NULL, 
	at DOUBLE NOT NULL, 
	sender INTEGER NOT NULL, 
	addressed TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	priority TEXT NOT NULL, 
	intent TEXT NOT NULL, 
	thread INTEGER NOT NULL, 
	reply_to INTEGER NOT NULL, 
	deadline DOUBLE NOT NULL, 
	project TEXT NOT NULL, 
	"key" TEXT, 
	body TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO mail_messages VALUES(1,1794839982.0045704841,10,'["jade-owl"]','Please review the notes','normal','request',1,0,1794847182.0010852813,'/home/user/project','b900e8c8feb5b345e65db545fe6a9db6','They are in notes/today.md.');
INSERT INTO mail_messages VALUES(2,1794839982.22955513,11,'["amber-fox"]','Re: Please review the notes','normal','inform',1,1,0.0,'/home/user/project','d25fc23d049aea0a6dbe83eb57835cf6','They are fine.');
INSERT INTO mail_messages VALUES(3,1794839982.3944497108,10,'["jade-owl"]','The build is red','normal','request',3,0,1794926382.3921477794,'/home/user/project','8b5445c381f4296cef54d78001677146','Since the last commit.');
INSERT INTO mail_messages VALUES(4,1794839982.5311350821,10,'["User"]','I need a decision','normal','inform',4,0,0.0,'/home/user/project','f52f2b72ff44ea2f6d726fc0584e8aac','Which licence?');
INSERT INTO mail_messages VALUES(5,1794839983.0700364112,2,'["amber-fox"]','jade-owl went idle without answering: The build is red','normal','inform',3,3,0.0,'/home/user/project',NULL,replace('jade-owl went idle without answering your request 3.\nIt had seen it.','\n',char(10)));
INSERT INTO mail_messages VALUES(6,1794839983.1664395331,10,'["#build"]','It is green again','normal','inform',6,0,0.0,'/home/user/project','green-1','✓');
INSERT INTO mail_messages VALUES(7,1794839983.5249183178,10,'["jade-owl"]','One more thing','normal','inform',7,0,0.0,'/home/user/project','849c5d14ca54d2387c61f6984b600b31','The notes need a title.');
INSERT INTO mail_messages VALUES(8,1794839984.0038311481,11,'["amber-fox"]','Stop at once','urgent','inform',8,0,0.0,'/home/user/project','61f5e5438ea965812ff9b871baf59278','');
INSERT INTO mail_messages VALUES(9,1794839985.5583639145,10,'["grey-crow"]','Are you there?','normal','inform',9,0,0.0,'/home/user/project','c9eeacd8a71156bf475200db8735c823','');
INSERT INTO mail_messages VALUES(10,1794839989.4386923313,10,'["jade-owl"]','Not shown yet','low','inform',10,0,0.0,'/home/user/project','7f693d3a04cb2ee557360e45509df60c','For later.');
CREATE TABLE mail_letters (
	message INTEGER NOT NULL, 
	recipient INTEGER NOT NULL, 
	sender INTEGER NOT NULL, 
	stage TEXT NOT NULL, 
	urgent SMALLINT NOT NULL, 
	owed SMALLINT NOT NULL, 
	told SMALLINT NOT NULL, 
	queued DOUBLE NOT NULL, 
	shown DOUBLE NOT NULL, 
	event TEXT NOT NULL, 
	event_id TEXT, 
	read DOUBLE NOT NULL, 
	answered DOUBLE NOT NULL, 
	bounced DOUBLE NOT NULL, 
	why TEXT NOT NULL, 
	PRIMARY KEY (message, recipient)
)
 WITHOUT ROWID

;
INSERT INTO mail_letters VALUES(1,11,10,'answered',0,0,0,1794839982.0045704841,1794839982.0740888119,'UserPromptSubmit','18e88d744826ec82-568a',1794839982.1267168522,1794839982.22955513,0.0,'');
INSERT INTO mail_letters VALUES(2,10,11,'shown',0,0,0,1794839982.22955513,1794839982.3206903934,'UserPromptSubmit','18e88d7456d86d04-56b2',0.0,0.0,0.0,'');
INSERT INTO mail_letters VALUES(3,11,10,'shown',0,1,2,1794839982.3944497108,1794839982.8518276214,'Stop','18e88d7473d4e983-5744',0.0,0.0,0.0,'');
INSERT INTO mail_letters VALUES(4,1,10,'queued',0,0,0,1794839982.5311350821,0.0,'',NULL,0.0,0.0,0.0,'');
INSERT INTO mail_letters VALUES(5,10,2,'shown',0,0,0,1794839983.0700364112,1794839984.2077136039,'Stop','18e88d74c74fb806-57df',0.0,0.0,0.0,'');
INSERT INTO mail_letters VALUES(6,11,10,'shown',0,0,0,1794839983.1664395331,1794839983.1712415218,'Stop','18e88d74775d1f42-5762',0.0,0.0,0.0,'');
INSERT INTO mail_letters VALUES(7,11,10,'shown',0,0,0,1794839983.5249183178,1794839983.5264213084,'Stop','18e88d749a4737c7-57af',0.0,0.0,0.0,'');
INSERT INTO mail_letters VALUES(8,10,11,'read',1,0,0,1794839984.0038311481,1794839984.0751011371,'PostToolUse','18e88d74bf66d832-57d5',1794839984.1279480457,0.0,0.0,'');
INSERT INTO mail_letters VALUES(9,13,10,'bounced',0,0,0,1794839985.5583639145,0.0,'',NULL,0.0,0.0,1794839985.5583639145,'the agent had ended');
INSERT INTO mail_letters VALUES(10,11,10,'queued',0,0,0,1794839989.4386923313,0.0,'',NULL,0.0,0.0,0.0,'');
CREATE INDEX events_by_time ON events (at, id);
CREATE INDEX events_by_session ON events (session, at, id);
CREATE INDEX events_by_kind ON events (event, at, id);
CREATE INDEX dones_by_time ON dones (at);
CREATE INDEX turns_by_time ON turns (at);
CREATE INDEX mail_messages_by_time ON mail_messages (at, id);
CREATE INDEX mail_messages_by_thread ON mail_messages (thread, id);
CREATE INDEX mail_messages_by_sender ON mail_messages (sender, id);
CREATE UNIQUE INDEX mail_messages_by_key ON mail_messages (sender, "key") WHERE key IS NOT NULL;
CREATE INDEX mail_letters_by_stage ON mail_letters (recipient, stage, message);
CREATE INDEX mail_letters_urgent ON mail_letters (recipient, stage, message) WHERE stage = 'queued' AND urgent = 1;
CREATE INDEX mail_letters_owed_by ON mail_letters (recipient, message) WHERE owed = 1;
CREATE INDEX mail_letters_owed_to ON mail_letters (sender, message) WHERE owed = 1;
CREATE INDEX mail_letters_at_event ON mail_letters (event_id) WHERE event_id IS NOT NULL;
COMMIT;
