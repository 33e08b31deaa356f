/**
 * Writes what each engine guarantees, as its boxes say it, into README.md, docs/guarantees.md and docs/choosing.md:
 * `node scripts/guarantees.mjs`, after `npm run build`.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { open } from 'signalbox'
import { withBlock } from './block.mjs'

/** The pages that a block stands in, with what writes it. */
export const pages = [
  { path: below('README.md'), block: brief },
  { path: below('docs/guarantees.md'), block: whole },
  { path: below('docs/choosing.md'), block: beside },
]

/** @param {string} path */
function below(path) {
  return fileURLToPath(new URL(`../${path}`, import.meta.url))
}

/**
 * A page with a fresh block in place of the one that it has.
 * @param {string} text of the page
 * @param {(boxes: readonly Kind[]) => string} block
 * @param {readonly Kind[]} boxes
 */
export function withGuarantees(text, block, boxes) {
  return withBlock(text, 'guarantees', block(boxes))
}

/**
 * What each kind of box says.
 * @returns {Promise<Kind[]>}
 */
export async function kinds() {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-guarantees-'))
  try {
    return [
      { url: 'memory:', guarantees: await guaranteesOf('memory:'), shownIn: 'memory' },
      { url: 'file:./dir', guarantees: await guaranteesOf(`file:${folder}`), shownIn: 'file' },
      {
        url: 'file:./dir?durable=false',
        guarantees: await guaranteesOf(`file:${folder}?durable=false`),
        shownIn: 'file',
      },
      ...(await overNetwork()),
    ]
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** @param {string} url */
async function guaranteesOf(url) {
  const box = await open(url)
  await box.close()
  return box.guarantees
}

/**
 * What the boxes of engines over servers say; none can be opened here, because that would need those servers.
 * @returns {Promise<Kind[]>}
 */
async function overNetwork() {
  /** @type {{ redisGuarantees: (cluster: boolean) => Guarantees }} */
  const { redisGuarantees } = await import(built('engines/redis/guarantees.js'))
  /** @type {{ quorumGuarantees: Guarantees }} */
  const { quorumGuarantees } = await import(built('engines/redis-quorum/guarantees.js'))
  /** @type {{ ZOOKEEPER_GUARANTEES: Guarantees }} */
  const { ZOOKEEPER_GUARANTEES: zookeeperGuarantees } = await import(built('engines/zookeeper/guarantees.js'))
  /** @type {{ hazelcastGuarantees: Guarantees }} */
  const { hazelcastGuarantees } = await import(built('engines/hazelcast/guarantees.js'))
  return [
    { url: 'redis://host', guarantees: redisGuarantees(false), shownIn: 'redis' },
    { url: 'redis+cluster://host,host', guarantees: redisGuarantees(true), shownIn: 'redis-cluster' },
    { url: 'redis-quorum://host,host,host', guarantees: quorumGuarantees, shownIn: 'quorum' },
    { url: 'zookeeper://host,host,host', guarantees: zookeeperGuarantees, shownIn: 'zookeeper' },
    { url: 'hazelcast://host,host,host', guarantees: hazelcastGuarantees, shownIn: 'hazelcast' },
  ]
}

/** @param {string} module */
function built(module) {
  return new URL(`../dist/src/${module}`, import.meta.url).href
}

/** @typedef {import('signalbox').Guarantees} Guarantees */
/**
 * `shownIn`: which fixture of the contract tests shows its weaknesses.
 * @typedef {{ url: string, guarantees: Guarantees, shownIn: string }} Kind
 */

/** @satisfies {Record<Guarantees['durability'], string>} */
const kept = {
  none: 'keeps none',
  process: 'as long as the process',
  'process crash': 'over the crash of a process',
  'power loss': 'over a power cut',
  replication: 'as far as it was replicated',
}

/** @type {{ PROMISES: Readonly<Record<import('signalbox').PromiseId, string>> }} */
const { PROMISES: promises } = await import(built('cli/doctor/finding.js'))

/**
 * The promises by name, and all kinds of box.
 * @param {readonly Kind[]} boxes
 */
function brief(boxes) {
  const named = Object.entries(promises).map(([promise, title]) => `**${promise}** ${title}`)
  return [`${named.join('; ')}.`, '', ...table(boxes), ''].join('\n')
}

/**
 * All kinds of box, and each weakness in words.
 * @param {readonly Kind[]} boxes
 */
function whole(boxes) {
  return [...table(boxes), '', ...boxes.flatMap(listed), ''].join('\n')
}

/** @param {readonly Kind[]} boxes */
function table(boxes) {
  return [
    '| box | excludes within one | frees what a dead process held | keeps committed state | weakened |',
    '|-|-|-|-|-|',
    ...boxes.map(row),
  ]
}

/** @param {Kind} box */
function row({ url, guarantees: { scope, deadHolder, durability, weaknesses } }) {
  const weakened = weaknesses.map(({ promise }) => promise).join(', ') || 'nothing'
  return `| \`${url}\` | ${scope} | ${deadHolder} | ${kept[durability]} | ${weakened} |`
}

/** @param {Kind} box */
function listed({ url, guarantees: { weaknesses }, shownIn }) {
  return weaknesses.map(
    ({ promise, how }) =>
      `- \`${url}\`, **${promise}**: ${how} ([shown](../test/contract/${shownIn}-fixture.ts))`,
  )
}

/**
 * The kinds of box side by side, promise by promise.
 * @param {readonly Kind[]} boxes
 */
function beside(boxes) {
  /** @param {readonly string[]} cells */
  const line = cells => `| ${cells.join(' | ')} |`
  return [
    line(['', ...boxes.map(({ url }) => `\`${url}\``)]),
    '|-'.repeat(boxes.length + 1) + '|',
    line(['excludes within one', ...boxes.map(({ guarantees }) => guarantees.scope)]),
    line(['frees what the dead held', ...boxes.map(({ guarantees }) => guarantees.deadHolder)]),
    line(['keeps committed state', ...boxes.map(({ guarantees }) => kept[guarantees.durability])]),
    ...Object.entries(promises).map(([promise, title]) =>
      line([
        `[${promise}](guarantees.md#${anchor(`${promise} ${title}`)}) ${title}`,
        ...boxes.map(({ guarantees }) =>
          guarantees.weaknesses.some(weakness => weakness.promise === promise) ? '**in part**' : 'yes',
        ),
      ]),
    ),
    '',
  ].join('\n')
}

/**
 * The anchor of a heading.
 * @param {string} heading
 */
function anchor(heading) {
  return heading.toLowerCase().replaceAll(',', '').replaceAll(' ', '-')
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const boxes = await kinds()
  for (const { path, block } of pages)
    writeFileSync(path, withGuarantees(readFileSync(path, 'utf8'), block, boxes))
}
