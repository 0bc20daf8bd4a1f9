// Pages whose titles have more of the query come first, and of equal ones, those that say how before those with figures.
var Scorer = {
  score: ([docname, title, , , score]) => {
    const query = new URLSearchParams(window.location.search).get("q") || "";
    const words = splitQuery(query.toLowerCase());
    const share = words.filter((word) => title.toLowerCase().includes(word)).length / Math.max(1, words.length);
    const place = /^(evidence|project)\//.test(docname) ? -8 : docname.includes("/") ? 0 : 3; // the last: how to
    return score + 20 * share * share + (title.toLowerCase().includes(query.toLowerCase().trim()) ? 10 : 0) + place;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
