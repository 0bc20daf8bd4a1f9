// Chinese text has no spaces: a query is cut into pairs of characters, as the index is.
var splitQuery = (query) =>
  query
    .split(/[^\p{Letter}\p{Number}_]+/gu)
    .flatMap((part) => part.match(/[\u3400-\u9fff]+|[^\u3400-\u9fff]+/g) || [])
    .flatMap((part) =>
      /[\u3400-\u9fff]/.test(part) && part.length > 2
        ? Array.from({ length: part.length - 1 }, (_, i) => part.slice(i, i + 2))
        : [part],
    );
