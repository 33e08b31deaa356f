/** Finds dead links on a built site. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Returns the anchor of a heading, in GitHub's form.
 * @param {string} heading
 */
export function slug(heading) {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')
}

/**
 * Returns each dead link and each missing picture, with its page.
 * @param {string} site folder with the pages
 * @param {string} base path under which the site is served, with a slash at both ends
 * @returns {string[]}
 */
export function deadLinks(site, base) {
  const pages = readdirSync(site, { recursive: true, encoding: 'utf8' }).filter(name =>
    name.endsWith('.html'),
  )
  const texts = new Map(pages.map(page => [page, readFileSync(join(site, page), 'utf8')]))
  return [...texts].flatMap(([page, text]) => {
    const targets = [...text.matchAll(/\s(?:href|src)="([^"]*)"/g)].map(([, target]) => target ?? '')
    const dead = targets.filter(target => {
      const url = new URL(target.replaceAll('&amp;', '&'), `http://site${base}${page}`)
      if (url.host !== 'site') return false
      const path = decodeURI(url.pathname).slice(base.length)
      const file = path === '' || path.endsWith('/') ? `${path}index.html` : path
      if (!decodeURI(url.pathname).startsWith(base) || !existsSync(join(site, file))) return true
      const anchor = decodeURIComponent(url.hash.slice(1))
      return anchor !== '' && !texts.get(file)?.includes(`id="${anchor}"`)
    })
    return [...new Set(dead)].map(target => `${page}: ${target}`)
  })
}
