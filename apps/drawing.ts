import type { TopLevelSpec } from 'vega-lite'

/** Returns a chart as SVG. Loads the packages vega and vega-lite when it is called. */
export async function drawn(specification: TopLevelSpec): Promise<string> {
  const { parse, View } = await import('vega')
  const { compile } = await import('vega-lite')
  const view = new View(parse(compile(specification).spec), { renderer: 'none' })
  return `${await view.toSVG()}\n`
}
