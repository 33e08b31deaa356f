/** Configuration of the site of the docs, which `npm run docs` builds. The pages are the Markdown files themselves. */
import { pageOf } from '../../scripts/site-sources.mjs'
import { slug } from '../../scripts/site-links.mjs'
import { entries } from '../../scripts/typedoc-entries.mjs'

/**
 * @param {string} text title of the group
 * @param {Readonly<Record<string, string>>} pages names and links of the pages
 * @param {boolean} collapsed
 */
function group(text, pages, collapsed = false) {
  return { text, collapsed, items: Object.entries(pages).map(([name, link]) => ({ text: name, link })) }
}

/** The icon of the site: a signal at danger. */
const icon =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect x="4" width="8" height="16" rx="4" fill="#333"/>' +
  '<circle cx="8" cy="4.5" r="2.5" fill="#e33"/><circle cx="8" cy="11.5" r="2.5" fill="#8a8"/></svg>'

const sidebar = [
  group('Start', {
    Signalbox: '/README',
    'Choosing an engine and a lock': '/docs/choosing',
    Guarantees: '/docs/guarantees',
    Recipes: '/docs/recipes',
    Examples: '/examples/README',
  }),
  group('Use', {
    Transactions: '/docs/transactions',
    'Values in other stores': '/docs/records',
    'Web Locks': '/docs/web-locks',
    'Rate limits': '/docs/limits',
    'Lock files': '/packages/lockfile/README',
    Queues: '/docs/queues',
    'The signalbox command': '/docs/cli',
    'The console': '/packages/console/README',
    'Errors and diagnostics': '/docs/diagnostics',
    'Testing code that uses locks': '/docs/testing',
    NestJS: '/packages/nestjs/README',
    Troubleshooting: '/docs/troubleshooting',
  }),
  group('Engines', {
    Memory: '/docs/memory',
    Files: '/docs/file',
    Redis: '/docs/redis',
    'Redis quorum': '/packages/redis-quorum/README',
    PostgreSQL: '/docs/postgres',
    ZooKeeper: '/docs/zookeeper',
    'ZooKeeper client': '/packages/zookeeper/README',
    Hazelcast: '/packages/hazelcast/README',
    'Hosted services': '/docs/hosted',
  }),
  group('Evidence', {
    Benchmarks: '/docs/benchmarks',
    'Chaos tests': '/docs/chaos',
    'Train tracker': '/docs/trains',
  }),
  group('Inside', {
    Architecture: '/docs/architecture',
    'Waiting and turns': '/docs/internals/waiting',
    'Code in Redis': '/docs/internals/redis',
    'Rows in PostgreSQL': '/docs/internals/postgres',
    'Traps of ZooKeeper': '/docs/internals/zookeeper',
    'Lock table': '/docs/internals/lock-table',
    Specification: '/docs/internals/specification',
    'Writing an engine': '/docs/conformance',
    'Checks for engines': '/packages/conformance/README',
  }),
  group('Project', {
    Changes: '/CHANGELOG',
    Versioning: '/docs/versioning',
    Contributing: '/CONTRIBUTING',
    Security: '/SECURITY',
  }),
]

/**
 * Points links to files that are not pages to the pages that show these files.
 * @typedef {{ type: string, attrGet: (name: string) => string | null, attrSet: (name: string, value: string) => void }} Token
 * @typedef {{ tokens: { children: Token[] | null }[], env: { relativePath: string } }} State
 * @param {{ core: { ruler: { push: (name: string, rule: (state: State) => void) => void } } }} markdown
 */
function linkSources(markdown) {
  markdown.core.ruler.push('sources', ({ tokens, env }) => {
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const href = token.type === 'link_open' ? token.attrGet('href') : null
      if (href !== null) token.attrSet('href', pageOf(env.relativePath, href))
    }
  })
}

export default {
  title: 'Signalbox',
  description: 'Locks, rate limits and safe shared state for TypeScript services',
  srcDir: '..',
  srcExclude: [
    '{build,coverage,dist,scripts,src,test,.*}/**',
    'packages/*/!(README.md)',
    'build-docs/site/**',
    'AGENTS.md',
  ],
  outDir: '../build-docs/site',
  cacheDir: '../build-docs/cache',
  head: [['link', { rel: 'icon', href: `data:image/svg+xml,${encodeURIComponent(icon)}` }]],
  rewrites: {
    'docs/index.md': 'index.md',
    'build-docs/api/:path*': 'api/:path*',
    'build-docs/source/:path*': 'source/:path*',
  },
  markdown: { anchor: { slugify: slug }, config: linkSources },
  themeConfig: {
    nav: [
      { text: 'Guide', link: '/docs/choosing', activeMatch: '^/docs/' },
      { text: 'API', link: '/api/', activeMatch: '^/api/' },
      { text: 'Changes', link: '/CHANGELOG' },
    ],
    sidebar: {
      '/': sidebar,
      '/api/': [
        {
          text: 'Modules',
          items: [...entries.values()].map(name => ({ text: name, link: `/api/${name}/` })),
        },
      ],
    },
    outline: [2, 3],
    search: {
      provider: 'local',
      options: {
        // Ranks pages of the API below others, because the names of the API are on many pages.
        miniSearch: {
          searchOptions: { boostDocument: (/** @type {string} */ id) => (id.includes('/api/') ? 0.3 : 1) },
        },
      },
    },
  },
}
