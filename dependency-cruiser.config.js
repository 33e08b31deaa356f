/**
 * The walls between the parts of Signalbox, see docs/architecture.md. `npm run check` looks for an import that goes
 * through one. Imports of types count as well as others.
 */

/** What every part may use: modules that know none of the parts. */
const base = '^src/base/'
/** What applications and the command line may use of the library: what the package exports. */
const publicEntries = [
  '^src/index\\.ts$',
  '^src/(engine|engines/redis|http|limits|limits/http|reports|store/records|redlock|testing|opentelemetry|web-locks)/index\\.ts$',
]

/**
 * A part may import from itself, from the base, and from what is named.
 * @param {string} name
 * @param {string} comment
 * @param {string} part
 * @param {string[]} known
 */
function wall(name, comment, part, ...known) {
  return {
    name,
    comment,
    severity: 'error',
    from: { path: part },
    to: { path: '^(src|apps|packages|test|bench|scripts)/', pathNot: [part, base, ...known] },
  }
}

export default {
  forbidden: [
    {
      name: 'no-cycles',
      comment:
        'A file can be understood after those that it imports. A companion package, which is imported when a URL asks for it, uses the entry that imports it.',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { pathNot: '^packages/(hazelcast|redis-quorum|zookeeper)/' } },
    },
    {
      name: 'no-cycles-in-packages',
      comment: 'The same holds within a package.',
      severity: 'error',
      from: { path: '^packages/([^/]+)/' },
      to: { circular: true, viaOnly: { path: '^packages/$1/' } },
    },
    wall('base', 'The base knows none of the parts.', base),
    wall('contract', 'The contract and the kit know no engine and no lock above them.', '^src/engine/'),
    wall('rules', 'The rules of limits decide about plain data.', '^src/engine/limits/'),
    wall(
      'core',
      'Locks know engines by their contract.',
      '^src/core/',
      '^src/engine/(contract|claim|retry-until-expired|wait-times)\\.ts$',
    ),
    wall(
      'store',
      'Stores know locks, and engines by their contract; records in Redis go over the clients that its engine knows, and those in PostgreSQL are checked as its schema is.',
      '^src/store/',
      '^src/core/',
      '^src/engine/contract\\.ts$',
      '^src/engines/postgres/untrusted\\.ts$',
      '^src/engines/redis/clients/detect-client\\.ts$',
    ),
    wall(
      'limits',
      'Limits know locks, and engines by their contract; over HTTP they answer errors as a service does.',
      '^src/limits/',
      '^src/core/',
      '^src/http/problem\\.ts$',
      '^src/engine/((contract|claim)\\.ts$|limits/)',
    ),
    {
      name: 'engines',
      comment: 'An engine knows the contract and the kit, and no other engine.',
      severity: 'error',
      from: { path: '^src/engines/([^/]+)/' },
      to: {
        path: '^(src|apps|test|bench|scripts)/',
        pathNot: ['^src/engines/$1/', base, '^src/engine/'],
      },
    },
    wall(
      'cli',
      'The command line uses what every user can; it looks whether a folder is there, prints a schema, and keeps the record of what was done once.',
      '^src/cli/',
      '^src/slots\\.ts$',
      '^packages/console/src/index\\.ts$',
      '^src/engines/(file/open|postgres/printed-schema)\\.ts$',
      ...publicEntries,
    ),
    wall(
      'reports',
      'The parts of programs that show the state of a box know the claims of its locks.',
      '^src/reports/',
      '^src/engine/claim\\.ts$',
    ),
    wall(
      'page-kit',
      'The parts that pages share know no page.',
      '^packages/console/src/page-kit/',
      '^src/reports/index\\.ts$',
    ),
    wall('console', 'The console uses what every user can.', '^packages/console/src/', ...publicEntries),
    wall(
      'adapters',
      'Adapters use what every user can.',
      '^src/(redlock|opentelemetry|web-locks)/',
      ...publicEntries,
    ),
    wall(
      'testing',
      'Boxes for tests are boxes on the memory engine, with another clock; they know a transaction as PostgreSQL does.',
      '^src/testing/',
      '^src/box\\.ts$',
      '^src/engine/(contract|claim)\\.ts$',
      '^src/engines/memory/memory-engine\\.ts$',
      '^src/engines/postgres/clients/callers-transaction\\.ts$',
    ),
    {
      name: 'zookeeper-client',
      comment: 'The ZooKeeper client is of use without Signalbox.',
      severity: 'error',
      from: { path: '^packages/zookeeper/src/', pathNot: '^packages/zookeeper/src/engine/' },
      to: {
        path: '^(src|apps|packages|test|bench|scripts)/',
        pathNot: '^packages/zookeeper/src/(?!engine/)',
      },
    },
    {
      name: 'zookeeper-engine',
      comment: 'The ZooKeeper engine uses what every user can, and the entry of the client.',
      severity: 'error',
      from: { path: '^packages/zookeeper/src/engine/' },
      to: {
        path: '^(src|apps|packages|test|bench|scripts)/',
        pathNot: ['^packages/zookeeper/src/(engine/|index\\.ts$)', ...publicEntries],
      },
    },
    wall(
      'conformance',
      'The conformance kit uses what every user can.',
      '^packages/conformance/',
      ...publicEntries,
    ),
    wall(
      'hazelcast',
      'The Hazelcast engine uses what every user can.',
      '^packages/hazelcast/src/',
      ...publicEntries,
    ),
    wall(
      'redis-quorum',
      'The quorum uses what every user can.',
      '^packages/redis-quorum/src/',
      ...publicEntries,
    ),
    wall('lockfile', 'Lock files use what every user can.', '^packages/lockfile/', ...publicEntries),
    wall('nestjs', 'The adapter to Nest uses what every user can.', '^packages/nestjs/', ...publicEntries),
    {
      name: 'packages',
      comment: 'A package has only itself by path, and all else by its name.',
      severity: 'error',
      from: { path: '^packages/([^/]+)/src/' },
      to: {
        path: '^(src|apps|packages|test|bench|scripts)/',
        pathNot: '^packages/$1/',
        dependencyTypesNot: ['aliased'],
      },
    },
    {
      name: 'tests-of-packages',
      comment: 'A test of a package also uses what several tests share.',
      severity: 'error',
      from: { path: '^packages/([^/]+)/test/' },
      to: {
        path: '^(src|apps|packages|test|bench|scripts)/',
        pathNot: ['^packages/$1/', '^packages/conformance/src/', '^test/support/'],
        dependencyTypesNot: ['aliased'],
      },
    },
    {
      name: 'library',
      comment: 'The library knows neither its applications nor its tests.',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: '^(apps|test|bench|scripts)/' },
    },
    {
      name: 'own-packages',
      comment: 'Of our packages, the library uses engines and the console, which it imports by their names.',
      severity: 'error',
      from: { path: '^src/' },
      to: {
        path: '^packages/',
        pathNot: '^packages/((console|hazelcast|redis-quorum)/src|zookeeper/src/engine)/index\\.ts$',
      },
    },
    {
      name: 'companions',
      comment: 'The library imports a package by its name.',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: '^packages/', dependencyTypesNot: ['aliased'] },
    },
    {
      name: 'late-companions',
      comment: 'The library imports a package only when a URL or a command asks for it.',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: '^packages/', dynamic: false },
    },
    {
      name: 'registry',
      comment: 'Only the registry imports engines of packages, and only the command its console.',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/(engines/registry|cli/console)\\.ts$' },
      to: { path: '^packages/' },
    },
    {
      name: 'applications',
      comment:
        'Applications use what every user can, modules of the command line, which they are added to, and the parts of pages.',
      severity: 'error',
      from: { path: '^apps/' },
      to: {
        path: '^(src|packages|test|bench)/',
        pathNot: [
          ...publicEntries,
          '^src/cli/',
          '^packages/console/src/page-kit/',
          '^packages/conformance/src/index\\.ts$',
        ],
      },
    },
  ],
  options: {
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '(^|/)(node_modules|dist|build)/' },
  },
}
