export { problemOf, type Problem, type ProblemDocument } from './problem.js'
