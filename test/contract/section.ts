export * from '../../src/conformance/section.js'
