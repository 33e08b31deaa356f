/** Generates pages of the site for files that other pages link to, because a reader of the site has no clone. */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, extname, join, normalize, relative } from 'node:path'
import { root } from './command.mjs'

/** Folder of the generated pages. The site serves it as `source/`. */
export const sourcePages = 'build-docs/source'

/** Matches links, except of pictures. */
const link = /(?<!!\[[^\]]*)\]\(([^)\s]+)\)/g
/** Languages of files whose extension is not the name of the language. */
const languages = new Map([['mjs', 'js']])

/**
 * Returns the target of a link on the site. A link to a file that is not a page leads to the page that shows the file.
 * @param {string} page path relative to the checkout
 * @param {string} href
 */
export function pageOf(page, href) {
  const path = fileOf(page, href)
  return path === undefined ? href : relative(dirname(page), join('source', pageName(path)))
}

/**
 * Writes a page for each file that a page links to and that is not a page itself.
 * @param {readonly string[]} pages paths relative to the checkout
 */
export function writeSourcePages(pages) {
  const linked = pages.flatMap(page =>
    [...readFileSync(join(root, page), 'utf8').matchAll(link)].flatMap(
      ([, href]) => fileOf(page, href ?? '') ?? [],
    ),
  )
  const files = new Set(linked)
  for (const path of files) {
    const target = join(root, sourcePages, pageName(path))
    mkdirSync(dirname(target), { recursive: true })
    writeFileSync(
      target,
      `---\nsearch: false\nprev: false\nnext: false\n---\n\n# ${path}\n\n${content(path, files)}`,
    )
  }
}

/**
 * @param {string} page
 * @param {string} href
 * @returns {string | undefined} path relative to the checkout; undefined for other links
 */
function fileOf(page, href) {
  if (/^([a-z]+:|#|\/)/.test(href)) return undefined
  const path = normalize(join(dirname(page), href.replace(/#.*/, ''))).replace(/\/$/, '')
  return path.endsWith('.md') || path.startsWith('..') || !existsSync(join(root, path)) ? undefined : path
}

/** @param {string} path */
function pageName(path) {
  return isFolder(path) ? `${path}/index.md` : `${path}.md`
}

/** @param {string} path */
function isFolder(path) {
  return statSync(join(root, path)).isDirectory()
}

/**
 * @param {string} path
 * @param {ReadonlySet<string>} files files that have a page
 */
function content(path, files) {
  if (isFolder(path)) {
    const names = readdirSync(join(root, path)).map(name => {
      const below = join(path, name)
      return files.has(below) ? `- [${name}](${relative(path, pageName(below))})` : `- ${name}`
    })
    return `${names.join('\n')}\n`
  }
  const extension = extname(path).slice(1)
  const text = readFileSync(join(root, path), 'utf8').trimEnd()
  return `\`\`\`\`${languages.get(extension) ?? extension}\n${text}\n\`\`\`\`\n`
}
