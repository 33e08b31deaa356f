/**
 * Returns a page whose block between `<!-- NAME -->` and `<!-- /NAME -->` is replaced.
 * @param {string} page
 * @param {string} name
 * @param {string} block
 */
export function withBlock(page, name, block) {
  const [begin, end] = [`<!-- ${name} -->\n`, `<!-- /${name} -->\n`]
  const [before, rest] = page.split(begin)
  const after = rest?.split(end)[1]
  if (before === undefined || after === undefined)
    throw new Error(`the page lacks ${begin.trim()} ... ${end.trim()}`)
  return `${before}${begin}${block}${end}${after}`
}
