import type { TopLevelSpec } from 'vega-lite'

/** A chart as a picture in SVG. Takes the packages vega and vega-lite, which are loaded only here. */
export async function drawn(specification: TopLevelSpec): Promise<string> {
  const { parse, View } = await import('vega')
  const { compile } = await import('vega-lite')
  const view = new View(parse(compile(specification).spec), { renderer: 'none' })
  return `${await view.toSVG()}\n`
}
